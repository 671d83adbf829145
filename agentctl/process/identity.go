package process

import "errors"

// ErrNoProcess: no process has this pid. A zombie has ended, so it counts as
// none. Any other error of Identity means that it could not be told.
var ErrNoProcess = errors.New("no such process")

// Identity tells the process that has this pid now from every other that ever
// had it: by boot and by start time (B-12). The text is opaque; on Linux it is
// "<boot id>:<start in clock ticks since boot>". The error is ErrNoProcess if
// there is none, and another if that cannot be determined.
func Identity(pid int) (string, error) {
	if pid <= 0 {
		return "", ErrNoProcess
	}
	e, err := readEntry(pid)
	if err != nil {
		return "", err
	}
	if e.zombie {
		return "", ErrNoProcess
	}
	return e.identity()
}
