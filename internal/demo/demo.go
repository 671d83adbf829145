package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/stack"
)

// Options of a run.
type Options struct {
	Agents   int
	Graceful bool   // the backend is asked to end instead of killed
	Chaos    bool   // more backends are killed at random moments, most while they recover
	Rounds   int    // of the chaos, 1 to MaxRounds
	Seed     uint32 // of the chaos; 0: one is drawn
	Keep     bool   // leave everything running until the context ends
	Out      io.Writer
	Logger   *zap.Logger
}

// MaxAgents is the most that a run takes.
const MaxAgents = 500

// Run runs the demo and cleans up everything that it started. An error means
// that it could not be carried out; broken promises are in the report.
func Run(ctx context.Context, opts Options) (_ *Report, err error) {
	if opts.Agents < 1 || opts.Agents > MaxAgents {
		return nil, fmt.Errorf("the demo takes 1 to %d agents, not %d", MaxAgents, opts.Agents)
	}
	if opts.Chaos && (opts.Rounds < 1 || opts.Rounds > MaxRounds) {
		return nil, fmt.Errorf("chaos takes 1 to %d rounds, not %d", MaxRounds, opts.Rounds)
	}
	r := &run{opts: opts, began: time.Now(), report: &Report{Mode: mode(opts), BrokenPromises: []string{}}}
	if err = r.prepare(ctx); err == nil {
		err = r.work(ctx)
	}
	// What fails because the reader has had enough is no failure to look into.
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if err != nil || !r.report.OK {
		r.tellLog()
	}
	if err != nil {
		return nil, errors.Join(err, r.cleanUp(ctx))
	}
	err = r.report.Print(opts.Out)
	if opts.Keep {
		r.linger(ctx)
	}
	return r.report, errors.Join(err, r.cleanUp(ctx))
}

func mode(opts Options) string {
	switch {
	case opts.Chaos:
		return "chaos"
	case opts.Graceful:
		return "graceful"
	default:
		return "sigkill"
	}
}

// run is one run at work.
type run struct {
	opts     Options
	began    time.Time
	report   *Report
	dir      string // everything lies below it
	gates    gates
	record   record
	stack    *stack.Stack
	backend  *stack.Backend
	sessions []*session
}

// say tells the reader what is going on.
func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.opts.Out, "[%6.1fs] %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// prepare makes the worktrees and starts the stack and its first backend.
func (r *run) prepare(ctx context.Context) (err error) {
	agent, err := stack.FindProgram("fakeagent")
	if err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "kandev-demo-"); err != nil {
		return fmt.Errorf("create the demo's directory: %w", err)
	}
	// Symbolic links of the temporary directory must not make two names of one
	// workspace.
	if r.dir, err = filepath.EvalSymlinks(r.dir); err != nil {
		return fmt.Errorf("resolve the demo's directory: %w", err)
	}
	// As root, Postgres runs as another user, who must get to its cluster.
	if err := os.Chmod(r.dir, 0o755); err != nil {
		return fmt.Errorf("open the demo's directory: %w", err)
	}
	r.gates = gates{outage: filepath.Join(r.dir, "outage"), finish: filepath.Join(r.dir, "finish")}
	r.record = record{state: filepath.Join(r.dir, "agents"), log: filepath.Join(r.dir, "calls.jsonl"), program: agent}

	r.say("making %d git worktrees", r.opts.Agents)
	if err := r.makeSessions(ctx); err != nil {
		return err
	}
	r.say("starting Postgres and Temporal")
	r.stack, err = stack.Start(ctx, stack.Options{
		Home: filepath.Join(r.dir, "home"), Data: r.dir,
		Settings: map[string]string{
			stack.EnvAgentSurvival: "true",
			stack.EnvServer:        "127.0.0.1:0",
		},
		Surroundings:  surroundings(os.Environ()),
		EndWithParent: true,
		Logger:        r.opts.Logger,
	})
	if err != nil {
		return err
	}
	r.say("starting the backend with agent survival on")
	r.backend, err = r.stack.StartBackend(ctx)
	return err
}

// surroundings leaves out what would make a run depend on the user's settings.
func surroundings(environ []string) []string {
	var kept []string
	for _, pair := range environ {
		if !strings.HasPrefix(pair, "KANDEV_") && !strings.HasPrefix(pair, "TEMPORAL_") {
			kept = append(kept, pair)
		}
	}
	return kept
}

func (r *run) makeSessions(ctx context.Context) error {
	trees, err := worktrees(ctx, r.dir, r.opts.Agents)
	if err != nil {
		return err
	}
	prints, err := fingerprints(trees)
	if err != nil {
		return err
	}
	for i, tree := range trees {
		r.sessions = append(r.sessions, &session{kind: kindOf(i), tree: tree, print: prints[i]})
	}
	return nil
}

// logTail is how much of the backend's log is shown when something went wrong.
const logTail = 4 << 10

// tellLog shows the end of the backend's log, which is about to be removed.
func (r *run) tellLog() {
	if r.stack == nil {
		return
	}
	log, err := os.ReadFile(r.stack.BackendLog())
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		r.say("the backend's log cannot be read: %v", err)
		return
	}
	r.say("the end of the backend's log:\n%s", log[max(0, len(log)-logTail):])
}

// linger keeps everything running until the reader has seen enough.
func (r *run) linger(ctx context.Context) {
	r.say("kept running: Temporal's UI is at %s; ask the backend with `recoveryctl --home %s session list`",
		r.stack.TemporalUI(), filepath.Join(r.dir, "home"))
	r.say("press Ctrl-C to end it")
	<-ctx.Done()
}

// cleanUp ends every process and removes the directory, whatever came before.
func (r *run) cleanUp(ctx context.Context) error {
	// The reader's Ctrl-C is a reason to clean up, not to leave it.
	ctx = context.WithoutCancel(ctx)
	r.say("cleaning up")
	var errs []error
	if r.backend != nil {
		errs = append(errs, r.backend.Stop(ctx))
	}
	if r.stack != nil {
		errs = append(errs, r.stack.Stop(ctx))
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}
