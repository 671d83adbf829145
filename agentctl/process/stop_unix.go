//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Looking at the process table is paced: often at first, then rarely.
const (
	firstPoll = 5 * time.Millisecond
	maxPoll   = 200 * time.Millisecond
)

func nextPoll(d time.Duration) time.Duration { return min(2*d, maxPoll) }

// cleanLooks is how often in a row the table must show no member: in the very
// moment of an exec a process shows no environment.
const cleanLooks = 2

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// Stop closes the process's input, asks its whole tree to end, waits up to
// grace, kills what is left and returns once nothing is. It also ends what a
// process that died before left behind. If ctx ends first the error is a
// *SurvivorError; Stop may be called again.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.stdin.end()
	if grace > 0 {
		if err := p.terminate(ctx, grace); err != nil {
			return err
		}
	}
	if err := p.kill(ctx); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return &SurvivorError{PIDs: []int{p.PID()}, Err: ctx.Err()}
	}
}

// terminate sends SIGTERM once to each member and waits for the end of all.
func (p *Process) terminate(ctx context.Context, grace time.Duration) error {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	asked := false
	var failed error
	for poll := firstPoll; ; poll = nextPoll(poll) {
		members, err := p.tree.members()
		live := living(members)
		if err != nil || len(live) == 0 {
			return err
		}
		if !asked {
			failed = signalAll(live, unix.SIGTERM)
			asked = true
		}
		select {
		case <-time.After(poll):
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return survivors(live, errors.Join(ctx.Err(), failed))
		}
	}
}

// kill sends SIGKILL in rounds until no member is found.
func (p *Process) kill(ctx context.Context) error {
	clean := 0
	for poll := firstPoll; ; poll = nextPoll(poll) {
		members, err := p.tree.members()
		if err != nil {
			return err
		}
		live := living(members)
		if len(live) > 0 {
			clean = 0
		} else if clean++; clean == cleanLooks {
			return collectOrphans(members)
		}
		failed := signalAll(live, unix.SIGKILL)
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			if len(live) > 0 {
				return survivors(live, errors.Join(ctx.Err(), failed))
			}
		}
	}
}

func living(members []entry) []processKey {
	var live []processKey
	for _, m := range members {
		if !m.zombie {
			live = append(live, m.processKey)
		}
	}
	return live
}

func survivors(live []processKey, err error) error {
	e := &SurvivorError{Err: err}
	for _, m := range live {
		e.PIDs = append(e.PIDs, m.pid)
	}
	return e
}

// signalAll signals each process that is still the one it was. One that has
// ended meanwhile is no failure.
func signalAll(members []processKey, sig unix.Signal) error {
	var errs []error
	for _, m := range members {
		if err := signalExactly(m, sig); err != nil && !errors.Is(err, ErrNoProcess) {
			errs = append(errs, fmt.Errorf("signal %d: %w", m.pid, err))
		}
	}
	return errors.Join(errs...)
}

// verify returns ErrNoProcess unless the pid still belongs to that process.
func verify(m processKey) error {
	if m.pid <= 1 || m.pid == os.Getpid() {
		return ErrNoProcess
	}
	now, err := readEntry(m.pid)
	if err != nil {
		return err
	}
	if now.processKey != m {
		return ErrNoProcess
	}
	return nil
}

func killPID(pid int, sig unix.Signal) error {
	err := unix.Kill(pid, sig)
	if errors.Is(err, unix.ESRCH) {
		return ErrNoProcess
	}
	return err
}

func exitStatus(state *os.ProcessState) (int, string) {
	if state == nil {
		return -1, ""
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -1, unix.SignalName(status.Signal())
	}
	return state.ExitCode(), ""
}

func isNotDirectory(err error) bool { return errors.Is(err, unix.ENOTDIR) }

// startError tells a command that cannot be executed from other failures.
func startError(err error) error {
	for _, fault := range []error{unix.ENOENT, unix.EACCES, unix.ENOEXEC, unix.ENOTDIR, exec.ErrNotFound} {
		if errors.Is(err, fault) {
			return ErrCommandNotFound
		}
	}
	return fmt.Errorf("start process: %w", withoutPath(err))
}
