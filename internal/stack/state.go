package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	identity "github.com/kandev/recovery/agentctl/process"
)

// process is a pid that is believed only together with its start (B-12).
type process struct {
	PID   int    `json:"pid,omitempty"`
	Start string `json:"start,omitempty"`
}

func processOf(pid int) (process, error) {
	start, err := identity.Identity(pid)
	if err != nil {
		return process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return process{PID: pid, Start: start}, nil
}

// alive reports whether the very same process still runs.
func (p process) alive() (bool, error) {
	if p.PID == 0 {
		return false, nil
	}
	start, err := identity.Identity(p.PID)
	if errors.Is(err, identity.ErrNoProcess) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("identify process %d: %w", p.PID, err)
	}
	return start == p.Start, nil
}

const (
	endGrace     = 60 * time.Second
	pollInterval = 20 * time.Millisecond
)

// end asks the process to end and waits; when the grace is over it is killed.
func (p process) end(ctx context.Context) error {
	running, err := p.alive()
	if err != nil || !running {
		return err
	}
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return fmt.Errorf("find process %d: %w", p.PID, err)
	}
	if err := terminate(handle); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end process %d: %w", p.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, endGrace)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		running, err := p.alive()
		if err != nil || !running {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err := handle.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("kill process %d: %w", p.PID, err)
			}
			return fmt.Errorf("process %d did not end in time and was killed", p.PID)
		}
	}
}

// state is what <home>/stack.json says about a stack that is up, or that was
// left with agents running.
type state struct {
	Home     string  `json:"home"`
	Data     string  `json:"data"`
	Program  string  `json:"program"` // the backend's
	Up       process `json:"up,omitzero"`
	Backend  process `json:"backend,omitzero"`
	Temporal process `json:"temporal,omitzero"`
}

func statePath(home string) string { return filepath.Join(home, "stack.json") }

// readState returns ErrNotUp when there is none.
func readState(home string) (state, error) {
	content, err := os.ReadFile(statePath(home))
	if errors.Is(err, os.ErrNotExist) {
		return state{}, ErrNotUp
	}
	if err != nil {
		return state{}, fmt.Errorf("read the stack's state: %w", err)
	}
	var s state
	if err := json.Unmarshal(content, &s); err != nil {
		return state{}, fmt.Errorf("read %s: %w", statePath(home), err)
	}
	return s, nil
}

// write replaces the file as a whole.
func (s state) write() error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the stack's state: %w", err)
	}
	next := statePath(s.Home) + ".new"
	if err := os.WriteFile(next, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the stack's state: %w", err)
	}
	if err := os.Rename(next, statePath(s.Home)); err != nil {
		return fmt.Errorf("write the stack's state: %w", err)
	}
	return nil
}

// ended says that nothing of the stack runs any more, but agents if they were
// left: Down needs to know where their record is.
func (s state) ended(agentsLeft bool) error {
	if agentsLeft {
		s.Up, s.Backend, s.Temporal = process{}, process{}, process{}
		return s.write()
	}
	if err := os.Remove(statePath(s.Home)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the stack's state: %w", err)
	}
	return nil
}
