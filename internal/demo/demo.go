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
	if r.Disposable, err = stack.NewDisposable("demo"); err != nil {
		return nil, err
	}
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
	gates    gates
	record   record
	sessions []*session
	*stack.Disposable
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
	r.gates = gates{outage: filepath.Join(r.Dir, "outage"), finish: filepath.Join(r.Dir, "finish")}
	r.record = record{state: filepath.Join(r.Dir, "agents"), log: filepath.Join(r.Dir, "calls.jsonl"), program: agent}

	r.say("making %d git worktrees", r.opts.Agents)
	if err := r.makeSessions(ctx); err != nil {
		return err
	}
	r.say("starting Postgres and Temporal")
	err = r.Start(ctx, stack.Options{
		Settings: map[string]string{
			stack.EnvAgentSurvival: "true",
			stack.EnvServer:        "127.0.0.1:0",
		},
		Surroundings: surroundings(os.Environ()),
		Logger:       r.opts.Logger,
	})
	if err != nil {
		return err
	}
	r.say("starting the backend with agent survival on")
	return r.StartBackend(ctx)
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
	trees, err := worktrees(ctx, r.Dir, r.opts.Agents)
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
	if r.Stack == nil {
		return
	}
	log, err := os.ReadFile(r.Stack.BackendLog())
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
		r.Stack.TemporalUI(), r.Home())
	r.say("press Ctrl-C to end it")
	<-ctx.Done()
}

// cleanUp ends every process and removes the directory, whatever came before.
func (r *run) cleanUp(ctx context.Context) error {
	r.say("cleaning up")
	return r.Close(ctx)
}
