// Package stack runs everything that one machine needs: a private Postgres
// cluster, Temporal's development server and the backend. It knows in which
// order they begin and end, and writes down what runs, so that another process
// can end it.
package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/stack/postgres"
	"github.com/kandev/recovery/internal/stack/temporal"
)

// Options say what to run.
type Options struct {
	Home string // the installation
	// Data is where Postgres, Temporal and the logs lie; empty: Home.
	Data    string
	Backend string // the backend's program; empty: FindProgram
	// Settings are environment variables of the backend, on top of the
	// surroundings.
	Settings map[string]string
	// Surroundings is the environment that the backend inherits.
	Surroundings []string
	// TemporalPort and UIPort are preferred; see temporal.Config.
	TemporalPort, UIPort int
	// LeaveAgents: Stop lets the control server and its agents run on.
	LeaveAgents   bool
	EndWithParent bool // see child.Spec; Postgres ends only by Stop
	Logger        *zap.Logger
}

// Stack is a running Postgres and Temporal, and the lock that keeps a second
// one of the same home away.
type Stack struct {
	opts     Options
	lock     *flock.Flock
	postgres *postgres.Cluster
	temporal *temporal.Server
	state    state
	left     bool // an earlier stack left agents running
}

// Errors of Start and Down, each with a remedy in its text.
var (
	ErrRunning  = errors.New("this home's stack is running already; see `recoveryctl status`, or end it with `recoveryctl down`")
	ErrLeftOver = errors.New("processes of an earlier stack of this home still run; end them with `recoveryctl down`")
	ErrNotUp    = errors.New("no stack of this home is up; start one with `recoveryctl up`")
)

// FindProgram returns one of this project's programs: the one beside the
// running program, otherwise the one on PATH.
func FindProgram(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	file := name
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), file)); err == nil {
		return path, nil
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("no %s program beside %s or on PATH; run `make build`", name, filepath.Base(self))
}

// Start starts Postgres and then Temporal.
func Start(ctx context.Context, opts Options) (_ *Stack, err error) {
	if opts.Data == "" {
		opts.Data = opts.Home
	}
	if opts.Backend == "" {
		if opts.Backend, err = FindProgram("backend"); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{opts.Home, opts.Data} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create directory: %w", err)
		}
	}
	s := &Stack{opts: opts}
	if s.lock, err = acquire(opts.Home); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func acquire(home string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(home, "stack.lock"))
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the home directory: %w", err)
	}
	if !held {
		return nil, ErrRunning
	}
	return lock, nil
}

func (s *Stack) begin(ctx context.Context) error {
	old, err := readState(s.opts.Home)
	if err != nil && !errors.Is(err, ErrNotUp) {
		return err
	}
	s.left = err == nil
	for _, p := range []process{old.Backend, old.Temporal} {
		alive, err := p.alive()
		if err != nil {
			return err
		}
		if alive {
			return ErrLeftOver
		}
	}
	s.state = state{Home: s.opts.Home, Data: s.opts.Data, Program: s.opts.Backend}
	if s.state.Up, err = processOf(os.Getpid()); err != nil {
		return err
	}
	if s.postgres, err = startPostgres(ctx, s.opts.Data, s.opts.Logger); err != nil {
		return err
	}
	s.temporal, err = temporal.Start(ctx, temporal.Config{
		Dir:    filepath.Join(s.opts.Data, "temporal"),
		DBFile: filepath.Join(s.opts.Data, "temporal", "temporal.db"),
		Port:   s.opts.TemporalPort, UIPort: s.opts.UIPort,
		EndWithParent: s.opts.EndWithParent, Logger: s.opts.Logger,
	})
	if err != nil {
		return err
	}
	if s.state.Temporal, err = processOf(s.temporal.PID()); err != nil {
		return err
	}
	return s.state.write()
}

func startPostgres(ctx context.Context, data string, logger *zap.Logger) (*postgres.Cluster, error) {
	return postgres.Start(ctx, postgres.Config{Dir: filepath.Join(data, "postgres"), Logger: logger})
}

// BackendLog is the file that the backend writes its log to.
func (s *Stack) BackendLog() string { return filepath.Join(s.opts.Home, "logs", "backend.log") }

// TemporalAddress is host:port of Temporal's frontend.
func (s *Stack) TemporalAddress() string { return s.temporal.Address }

// TemporalUI is the URL of Temporal's web UI.
func (s *Stack) TemporalUI() string { return s.temporal.UIAddress }

// DSN is how Postgres is reached.
func (s *Stack) DSN() string { return s.postgres.DSN }

// TemporalExited is closed when Temporal has ended.
func (s *Stack) TemporalExited() <-chan struct{} { return s.temporal.Exited() }

// Stop ends the control server, unless agents are to be left, then Temporal and
// Postgres. The backend must have ended before. What fails to end does not keep
// the rest running.
func (s *Stack) Stop(ctx context.Context) error {
	var errs []error
	agentsLeft := s.opts.LeaveAgents
	if s.state.Backend.PID == 0 {
		// No backend ran, so no control server was started or taken over.
		agentsLeft = s.left
	} else if !agentsLeft {
		err := endControlServer(ctx, s.opts.Backend, s.opts.environment(s.postgres.DSN, ""))
		errs, agentsLeft = append(errs, err), err != nil
	}
	if s.temporal != nil {
		errs = append(errs, s.temporal.Stop(ctx))
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Stop(ctx))
	}
	if s.state.Home != "" {
		errs = append(errs, s.state.ended(agentsLeft))
	}
	errs = append(errs, s.lock.Unlock())
	return errors.Join(errs...)
}
