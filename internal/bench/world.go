package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/internal/stack"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

const (
	profileID = "bench"
	poll      = 10 * time.Millisecond
	// detachedLimit is the most events that an agent may leave while nobody
	// listens: the largest that the settings accept.
	detachedLimit = 10_000
	// oneThread is for every agent, ours and the baseline's. They only write; with
	// more threads they took a third of two cores from what is measured.
	oneThread = "1"
	envThread = "GOMAXPROCS"
)

// world is one stack with its agents.
type world struct {
	opts     Options
	report   *Report
	agent    string // the scripted agent's program
	sessions []userapi.Session
	*stack.Disposable
}

func newWorld(opts Options, into *Report) (*world, error) {
	place, err := stack.NewDisposable("bench")
	return &world{opts: opts, report: into, Disposable: place}, err
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(w.opts.Out, format+"\n", args...) }

// found keeps a result, and tells the reader, who may not wait for the others.
func (w *world) found(r Result) {
	w.report.Results = append(w.report.Results, r)
	w.say("  %s: %s %s, ratio %.2f; %s", r.Benchmark, number(r.Value), r.Unit, r.Ratio, r.figures())
}

// prepare starts everything and waits until the backend serves.
func (w *world) prepare(ctx context.Context) (err error) {
	if w.agent, err = stack.FindProgram("fakeagent"); err != nil {
		return err
	}
	w.say("starting Postgres, Temporal and the backend")
	err = w.Start(ctx, stack.Options{
		Logger: w.opts.Logger,
		Settings: map[string]string{
			stack.EnvAgentSurvival: "true", stack.EnvServer: "127.0.0.1:0",
			"KANDEV_ACP_RECOVERY_DEADLINE": "5m", "KANDEV_ACP_DETACHED_EVENT_LIMIT": fmt.Sprint(detachedLimit),
			"PATH": os.Getenv("PATH"), "HOME": w.Dir,
		},
	})
	if err != nil {
		return err
	}
	if _, err := w.startBackend(ctx); err != nil {
		return err
	}
	return w.Backend.Client.PutProfile(ctx, userapi.Profile{
		ID: profileID, Agent: "fakeagent", Command: []string{w.agent},
		Env: map[string]string{fakeagent.EnvState: w.agentState(), envThread: oneThread},
	})
}

func (w *world) agentState() string { return filepath.Join(w.Dir, "agents") }

// startBackend starts a backend and waits until it has recovered.
func (w *world) startBackend(ctx context.Context) (status userapi.Status, err error) {
	if err := w.StartBackend(ctx); err != nil {
		return status, err
	}
	err = await(ctx, "the backend serves", func(ctx context.Context) (bool, error) {
		status, err = w.Backend.Client.Status(ctx)
		return status.Phase == userapi.PhaseServing, err
	})
	return status, err
}

// restart kills the backend and starts another one.
func (w *world) restart(ctx context.Context) (userapi.Status, error) {
	if err := w.Backend.Kill(); err != nil {
		return userapi.Status{}, err
	}
	return w.startBackend(ctx)
}

// grow starts agents until there are n, and waits until all are idle.
func (w *world) grow(ctx context.Context, n int) error {
	if len(w.sessions) < n {
		w.say("starting agents, %d in all", n)
	}
	for len(w.sessions) < n {
		workspace, err := w.workspace(fmt.Sprintf("workspace-%d", len(w.sessions)))
		if err != nil {
			return err
		}
		created, err := w.Backend.Client.CreateSession(ctx, userapi.CreateSession{ProfileID: profileID, Workspace: workspace})
		if err != nil {
			return fmt.Errorf("create a session: %w", err)
		}
		w.sessions = append(w.sessions, created)
	}
	return w.idle(ctx)
}

func (w *world) workspace(name string) (string, error) {
	dir := filepath.Join(w.Dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a workspace: %w", err)
	}
	return dir, nil
}

// idle waits until every agent is there and waits for a prompt.
func (w *world) idle(ctx context.Context) error {
	return await(ctx, "every agent is idle", func(ctx context.Context) (bool, error) {
		sessions, err := w.Backend.Client.Sessions(ctx)
		ready := 0
		for _, s := range sessions {
			if s.State == recovery.StateFailed {
				return false, fmt.Errorf("session %s failed: %s", s.ID, s.Cause)
			}
			if s.State == recovery.StateWaitingForInput && s.Agent != nil {
				ready++
			}
		}
		return ready == len(w.sessions), err
	})
}

// peers opens connections of our own to what the backend talks to.
func (w *world) peers(ctx context.Context) (*peers, error) {
	status, err := w.Backend.Client.Status(ctx)
	if err != nil {
		return nil, err
	}
	return openPeers(ctx, status.Installation, w.Stack.DSN(), w.Home())
}

func await(ctx context.Context, what string, check func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("%s: not within %s", what, bound))
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		done, err := check(ctx)
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
