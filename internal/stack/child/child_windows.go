package child

import (
	"os"
	"syscall"
)

func attributes(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Windows has no request to end that a program without a console sees.
func terminate(p *os.Process) error { return p.Kill() }
