package process

import "golang.org/x/sys/unix"

func signalExactly(m processKey, sig unix.Signal) error {
	if err := verify(m); err != nil {
		return err
	}
	return killPID(m.pid, sig)
}

// holdExit does nothing: this system offers no wait that leaves the child
// uncollected.
func holdExit(int) {}
