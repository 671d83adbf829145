//go:build unix && !linux

package launch

import "syscall"

// attributes puts a detached server into a session of its own, where neither a
// terminal nor a shell's job control reaches it. A bound one has its standard
// input as its only tie here.
func attributes(detached bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: detached}
}

// pinThread is for platforms with a parent-death signal.
func pinThread() {}
