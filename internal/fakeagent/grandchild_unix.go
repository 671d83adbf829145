//go:build unix

package fakeagent

import "syscall"

func grandchildAttributes(setsid bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: setsid}
}
