package launch

import (
	"runtime"
	"syscall"
)

// attributes puts a detached server into a session of its own, where neither a
// terminal nor a shell's job control reaches it, and has a bound one terminated
// when this process dies.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}

// pinThread keeps the calling goroutine on its thread until it returns.
func pinThread() { runtime.LockOSThread() }
