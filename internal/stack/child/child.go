// Package child runs the long-lived programs of a local stack: each in a
// process group of its own, so that a terminal's Ctrl-C reaches only the
// program that decides in which order they end.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Spec says what to start.
type Spec struct {
	Path string
	Args []string // without the program's name
	Env  []string // exactly this environment
	Dir  string
	Log  string // file that standard output and error are appended to
	// EndWithParent kills the program when this process dies, where the
	// platform can (Linux).
	EndWithParent bool
}

// Process is a started program. Its end is always waited for.
type Process struct {
	name   string
	cmd    *exec.Cmd
	exited chan struct{}
	state  error // valid once exited is closed
}

// Start starts the program.
func Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env, cmd.Dir = spec.Env, spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes(spec.EndWithParent)
	p := &Process{name: filepath.Base(spec.Path), cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go p.live(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return p, nil
}

// live starts the program and waits for it on one thread: Linux ties the
// parent-death signal to the thread that spawned.
func (p *Process) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.state = p.cmd.Wait()
	close(p.exited)
}

// PID is the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended and was waited for.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitError says how the process ended, nil for status 0. It may be called
// only after Exited is closed.
func (p *Process) ExitError() error { return p.state }

// Kill ends the process at once and waits for its end.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.exited
	return nil
}

// ErrKilled: the process did not end by itself in time, or the context ended,
// and was killed.
var ErrKilled = errors.New("did not end in time and was killed")

// Stop asks the process to end and waits for it up to the grace; then it is
// killed, which is reported as ErrKilled. Stopping an ended process succeeds.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	if err := terminate(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if err := p.Kill(); err != nil {
		return err
	}
	return fmt.Errorf("%s %w", p.name, ErrKilled)
}
