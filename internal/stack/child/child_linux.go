package child

import "syscall"

func attributes(endWithParent bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if endWithParent {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}
