package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// signalExactly signals that process and no later one with its pid: a
// descriptor opened before the check cannot change its process after it.
func signalExactly(m processKey, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(m.pid, 0)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return signalByPID(m, sig)
	case errors.Is(err, unix.ESRCH):
		return ErrNoProcess
	case err != nil:
		return err
	}
	defer unix.Close(fd)
	if err := verify(m); err != nil {
		return err
	}
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrNoProcess
	}
	return err
}

// signalByPID serves kernels and sandboxes without process descriptors.
func signalByPID(m processKey, sig unix.Signal) error {
	if err := verify(m); err != nil {
		return err
	}
	return killPID(m.pid, sig)
}

// holdExit waits for the end of a child and leaves it uncollected, so that its
// pid and session cannot be given away yet.
func holdExit(pid int) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
