package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// readEntry reads one process; ErrNoProcess if there is none.
func readEntry(pid int) (entry, error) {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	if isGone(err) {
		return entry{}, ErrNoProcess
	}
	if err != nil {
		return entry{}, fmt.Errorf("read process status: %w", err)
	}
	return parseStat(pid, stat)
}

// parseStat reads the fields after the command, which is in parentheses and
// may itself contain spaces and parentheses.
func parseStat(pid int, stat []byte) (entry, error) {
	const (
		state   = 0
		ppid    = 1
		session = 3
		start   = 19
	)
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) <= start {
		return entry{}, fmt.Errorf("process status of %d is not understood", pid)
	}
	e := entry{processKey: processKey{pid: pid}}
	var errs [3]error
	e.ppid, errs[0] = strconv.Atoi(fields[ppid])
	e.session, errs[1] = strconv.Atoi(fields[session])
	e.start, errs[2] = strconv.ParseUint(fields[start], 10, 64)
	e.zombie = fields[state] == "Z" || fields[state] == "X"
	if err := errors.Join(errs[:]...); err != nil {
		return entry{}, fmt.Errorf("process status of %d: %w", pid, err)
	}
	return e, nil
}

// readTable reads every process. One that ends meanwhile is left out.
func readTable() ([]entry, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("open process table: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list process table: %w", err)
	}
	table := make([]entry, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		e, err := readEntry(pid)
		if errors.Is(err, ErrNoProcess) {
			continue
		}
		if err != nil {
			return nil, err
		}
		table = append(table, e)
	}
	return table, nil
}

// readMarker returns the marker in a process's environment. A process whose
// environment we may not read is another user's and has none of ours.
func readMarker(pid int) (string, error) {
	env, err := os.ReadFile(procFile(pid, "environ"))
	if isGone(err) || errors.Is(err, os.ErrPermission) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read process environment: %w", err)
	}
	return markerIn(env), nil
}

func procFile(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}

func isGone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}
