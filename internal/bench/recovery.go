package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/internal/stack"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// Options of a run.
type Options struct {
	Survivors []int // sizes, growing
	Out       io.Writer
	Logger    *zap.Logger
}

// bound is how long one step may take.
const bound = 5 * time.Minute

const (
	profileID = "bench"
	// atOnce bounds the requests in flight, also those of the baseline: as many
	// as the recovery pass works on at once.
	atOnce = 50
	poll   = 10 * time.Millisecond
)

// Run measures the recovery of survivors: the time from the start of a
// backend's process until it has published every session, beside the same reads
// by a plain Go program.
func Run(ctx context.Context, opts Options) (_ *Report, err error) {
	b := &bench{opts: opts}
	defer func() { err = errors.Join(err, b.cleanUp(context.WithoutCancel(ctx))) }()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	report := NewReport()
	for _, n := range opts.Survivors {
		r, err := b.recovery(ctx, n)
		if err != nil {
			return nil, err
		}
		report.Results = append(report.Results, r)
	}
	return report, report.Print(opts.Out)
}

type bench struct {
	opts     Options
	dir      string
	stack    *stack.Stack
	backend  *stack.Backend
	sessions []string
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.opts.Out, format+"\n", args...) }

func (b *bench) prepare(ctx context.Context) (err error) {
	program, err := stack.FindProgram("fakeagent")
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "kandev-bench-"); err != nil {
		return fmt.Errorf("create the directory of the run: %w", err)
	}
	// As root, Postgres runs as another user, who must get to its cluster.
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return fmt.Errorf("open the directory of the run: %w", err)
	}
	b.say("starting Postgres, Temporal and the backend")
	b.stack, err = stack.Start(ctx, stack.Options{
		Home: filepath.Join(b.dir, "home"), Data: b.dir, EndWithParent: true, Logger: b.opts.Logger,
		Settings: map[string]string{
			stack.EnvAgentSurvival: "true", stack.EnvServer: "127.0.0.1:0",
			"KANDEV_ACP_RECOVERY_DEADLINE": "5m", "PATH": os.Getenv("PATH"), "HOME": b.dir,
		},
	})
	if err != nil {
		return err
	}
	if b.backend, err = b.stack.StartBackend(ctx); err != nil {
		return err
	}
	if _, err := b.serving(ctx); err != nil {
		return err
	}
	return b.backend.Client.PutProfile(ctx, userapi.Profile{
		ID: profileID, Agent: "fakeagent", Command: []string{program},
		Env: map[string]string{fakeagent.EnvState: filepath.Join(b.dir, "agents")},
	})
}

// recovery measures with n survivors.
func (b *bench) recovery(ctx context.Context, n int) (Result, error) {
	b.say("starting agents, %d in all", n)
	if err := b.grow(ctx, n); err != nil {
		return Result{}, err
	}
	b.say("killing the backend and starting it again with %d survivors", n)
	if err := b.backend.Kill(); err != nil {
		return Result{}, err
	}
	var err error
	if b.backend, err = b.stack.StartBackend(ctx); err != nil {
		return Result{}, err
	}
	status, err := b.serving(ctx)
	if err != nil {
		return Result{}, err
	}
	if got := status.Recovery.Counts[recovery.OutcomeRetracked]; got != n {
		return Result{}, fmt.Errorf("%d of %d sessions were re-tracked: %v", got, n, status.Recovery.Counts)
	}
	took := status.StartedAt.Add(time.Duration(status.Recovery.FinishedAfterMS) * time.Millisecond).Sub(b.backend.StartedAt)
	plain, err := b.plainReads(ctx, status.Installation)
	if err != nil {
		return Result{}, err
	}
	return result("recovery", n, took.Seconds(), fmt.Sprintf("the same reads, %d goroutines", atOnce), plain.Seconds()), nil
}

// grow starts agents until there are n.
func (b *bench) grow(ctx context.Context, n int) error {
	for len(b.sessions) < n {
		workspace := filepath.Join(b.dir, fmt.Sprintf("workspace-%d", len(b.sessions)))
		if err := os.Mkdir(workspace, 0o755); err != nil {
			return fmt.Errorf("make a workspace: %w", err)
		}
		created, err := b.backend.Client.CreateSession(ctx, userapi.CreateSession{ProfileID: profileID, Workspace: workspace})
		if err != nil {
			return fmt.Errorf("create a session: %w", err)
		}
		b.sessions = append(b.sessions, created.ID)
	}
	return b.await(ctx, "every agent is ready", func(ctx context.Context) (bool, error) {
		sessions, err := b.backend.Client.Sessions(ctx)
		ready := 0
		for _, s := range sessions {
			if s.State == recovery.StateFailed {
				return false, fmt.Errorf("session %s failed: %s", s.ID, s.Cause)
			}
			if s.State == recovery.StateWaitingForInput && s.Agent != nil {
				ready++
			}
		}
		return ready == n, err
	})
}

// serving waits until the backend has recovered.
func (b *bench) serving(ctx context.Context) (status userapi.Status, err error) {
	err = b.await(ctx, "the backend serves", func(ctx context.Context) (bool, error) {
		status, err = b.backend.Client.Status(ctx)
		return status.Phase == userapi.PhaseServing, err
	})
	return status, err
}

func (b *bench) await(ctx context.Context, what string, check func(context.Context) (bool, error)) error {
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

// plainReads reads per session what the recovery pass reads, with nothing
// durable in between.
func (b *bench) plainReads(ctx context.Context, installation string) (time.Duration, error) {
	peers, err := openPeers(ctx, installation, b.stack.DSN(), filepath.Join(b.dir, "home"))
	if err != nil {
		return 0, err
	}
	defer peers.close()
	began := time.Now()
	instances, err := peers.control.List(ctx)
	if err != nil {
		return 0, fmt.Errorf("enumerate: %w", err)
	}
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(atOnce)
	for _, in := range instances {
		reads.Go(func() error { return peers.observe(ctx, in.SessionID, in.ID) })
	}
	err = reads.Wait()
	return time.Since(began), err
}

func (b *bench) cleanUp(ctx context.Context) error {
	var errs []error
	if b.backend != nil {
		errs = append(errs, b.backend.Stop(ctx))
	}
	if b.stack != nil {
		errs = append(errs, b.stack.Stop(ctx))
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}
