package fakeagent

import "syscall"

func grandchildAttributes(setsid bool) *syscall.SysProcAttr {
	if !setsid {
		return nil
	}
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
