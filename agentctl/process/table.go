package process

import "fmt"

// processKey names one process for good: pids are used again, start times of
// one pid are not.
type processKey struct {
	pid   int
	start uint64 // in the platform's unit, only compared
}

// entry is one row of the process table.
type entry struct {
	processKey
	ppid    int
	session int // the process group where sessions are not told
	zombie  bool
	marker  string // empty if it has none, or we may not know
}

func (e entry) identity() (string, error) {
	boot, err := bootID()
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return fmt.Sprintf("%s:%d", boot, e.start), nil
}

// identifyChild describes a child that has not been collected. It may have
// ended already.
func identifyChild(pid int) (processKey, string, error) {
	e, err := readEntry(pid)
	if err != nil {
		return processKey{}, "", err
	}
	identity, err := e.identity()
	return e.processKey, identity, err
}
