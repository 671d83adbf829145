package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// tree is only its root here: agents do not survive a backend on this
// platform, so that no tree has to be found again.
type tree struct{}

func newTree(processKey, string) *tree { return &tree{} }

func (*tree) remember() {}

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Stop closes the process's input, waits up to grace for its end and then ends
// it.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.stdin.end()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return &SurvivorError{PIDs: []int{p.PID()}, Err: ctx.Err()}
	case <-timer.C:
	}
	err := p.child.Kill()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return &SurvivorError{PIDs: []int{p.PID()}, Err: err}
	}
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return &SurvivorError{PIDs: []int{p.PID()}, Err: ctx.Err()}
	}
}

func findCommand(spec Spec) (string, error) {
	if len(spec.Argv) == 0 {
		return "", ErrCommandNotFound
	}
	path, err := exec.LookPath(spec.Argv[0])
	if err != nil {
		return "", ErrCommandNotFound
	}
	return path, nil
}

func bootID() (string, error) { return "windows", nil }

// readEntry takes the creation time for the start.
func readEntry(pid int) (entry, error) {
	h, err := syscall.OpenProcess(syscall.PROCESS_QUERY_INFORMATION, false, uint32(pid))
	if errors.Is(err, syscall.Errno(87)) { // ERROR_INVALID_PARAMETER: no such process
		return entry{}, ErrNoProcess
	}
	if err != nil {
		return entry{}, fmt.Errorf("open process: %w", err)
	}
	defer syscall.CloseHandle(h)
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return entry{}, fmt.Errorf("read process times: %w", err)
	}
	return entry{
		processKey: processKey{pid: pid, start: uint64(created.Nanoseconds())},
		zombie:     exited.Nanoseconds() > 0 && exited != syscall.Filetime{},
	}, nil
}

func holdExit(int) {}

func exitStatus(state *os.ProcessState) (int, string) {
	if state == nil {
		return -1, ""
	}
	return state.ExitCode(), ""
}

func isNotDirectory(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

func startError(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return ErrCommandNotFound
	}
	return fmt.Errorf("start process: %w", withoutPath(err))
}
