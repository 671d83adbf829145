package process

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// zombieState is SZOMB of sys/proc.h.
const zombieState = 5

func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

// readEntry reads one process; ErrNoProcess if there is none.
func readEntry(pid int) (entry, error) {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.pid", pid)
	if err != nil {
		return entry{}, fmt.Errorf("read process status: %w", err)
	}
	if len(procs) == 0 {
		return entry{}, ErrNoProcess
	}
	return toEntry(&procs[0]), nil
}

func readTable() ([]entry, error) {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list process table: %w", err)
	}
	table := make([]entry, len(procs))
	for i := range procs {
		table[i] = toEntry(&procs[i])
	}
	return table, nil
}

func toEntry(p *unix.KinfoProc) entry {
	started := p.Proc.P_starttime
	return entry{
		processKey: processKey{
			pid:   int(p.Proc.P_pid),
			start: uint64(started.Sec)*1_000_000 + uint64(started.Usec),
		},
		ppid:    int(p.Eproc.Ppid),
		session: int(p.Eproc.Pgid),
		zombie:  p.Proc.P_stat == zombieState,
	}
}

// readMarker returns the marker in a process's environment. The kernel tells
// only of processes of the same user, and not of every one.
func readMarker(pid int) (string, error) {
	args, err := unix.SysctlRaw("kern.procargs2", pid)
	for _, untold := range []error{unix.EINVAL, unix.EPERM, unix.ESRCH, unix.EIO} {
		if errors.Is(err, untold) {
			return "", nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("read process environment: %w", err)
	}
	return markerIn(args), nil
}
