package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/internal/stack/child"
	"github.com/kandev/recovery/userapi"
)

// Environment variables that a stack sets for its backend.
const (
	EnvHome          = "KANDEV_HOME"
	EnvDatabase      = "KANDEV_DATABASE_DSN"
	EnvTemporal      = "TEMPORAL_ADDRESS"
	EnvServer        = "KANDEV_SERVER_ADDRESS"
	EnvAgentSurvival = "KANDEV_FEATURES_AGENT_SURVIVAL"
)

const (
	backendStart = 60 * time.Second
	backendGrace = 60 * time.Second
	shutdownTime = 60 * time.Second
)

// Backend is a running backend process that answers.
type Backend struct {
	Address   string // host:port of its API
	BootID    string
	StartedAt time.Time // when its process was started
	Client    *userapi.Client
	process   *child.Process
}

// StartBackend starts the backend and returns once it answers on its status
// page; that is before it has recovered.
func (s *Stack) StartBackend(ctx context.Context) (*Backend, error) {
	output := filepath.Join(s.opts.Data, "backend.out")
	earlier, err := read(output, 0)
	if err != nil {
		return nil, err
	}
	b := &Backend{StartedAt: time.Now()}
	b.process, err = child.Start(child.Spec{
		Path: s.opts.Backend, Dir: s.opts.Data, Log: output,
		Env:           s.opts.environment(s.postgres.DSN, s.temporal.Address),
		EndWithParent: s.opts.EndWithParent,
	})
	if err != nil {
		return nil, err
	}
	if err := s.record(b); err != nil {
		return nil, errors.Join(err, b.process.Kill())
	}
	if err := b.awaitAnswer(ctx, s.opts.Home); err != nil {
		killed := b.process.Kill()
		// What ends a backend this early is said on its standard error.
		said, unread := read(output, len(earlier))
		return nil, errors.Join(fmt.Errorf("%w; see %s: %s", err, s.BackendLog(), strings.TrimSpace(said)), killed, unread)
	}
	return b, nil
}

// read returns what a file has after the offset; one that is absent has nothing.
func read(file string, offset int) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the backend's output: %w", err)
	}
	return string(content[min(offset, len(content)):]), nil
}

func (s *Stack) record(b *Backend) (err error) {
	if s.state.Backend, err = processOf(b.process.PID()); err != nil {
		return err
	}
	return s.state.write()
}

// errBackendEnded: the backend ended before it answered.
var errBackendEnded = errors.New("the backend ended while it started")

func (b *Backend) awaitAnswer(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, backendStart)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := b.ask(ctx, dir)
		if err == nil {
			return nil
		}
		select {
		case <-b.process.Exited():
			return errBackendEnded
		case <-ctx.Done():
			return fmt.Errorf("the backend did not answer: %w", err)
		case <-tick.C:
		}
	}
}

var errNotYet = errors.New("it has not said yet where it is")

// ask believes the runtime file only when it names this process and the boot
// that answers: a killed backend leaves its own behind.
func (b *Backend) ask(ctx context.Context, dir string) error {
	place, err := home.ReadRuntime(dir)
	if err != nil {
		return err
	}
	if place.PID != b.process.PID() {
		return errNotYet
	}
	client, err := Connect(dir)
	if err != nil {
		return err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	if status.BootID != place.BootID {
		return errNotYet
	}
	b.Address, b.BootID, b.Client = place.Address, place.BootID, client
	return nil
}

// Connect returns a client of the backend that runs in the home directory.
func Connect(dir string) (*userapi.Client, error) {
	place, err := home.ReadRuntime(dir)
	if err != nil {
		return nil, err
	}
	token, err := home.ReadToken(dir)
	if err != nil {
		return nil, err
	}
	return userapi.NewClient("http://"+place.Address, token), nil
}

// Kill ends the backend at once (SIGKILL) and waits for its end.
func (b *Backend) Kill() error { return b.process.Kill() }

// Stop ends the backend by its own shutdown.
func (b *Backend) Stop(ctx context.Context) error { return b.process.Stop(ctx, backendGrace) }

// Exited is closed when the backend has ended.
func (b *Backend) Exited() <-chan struct{} { return b.process.Exited() }

// environment is that of the backend and of its one-shot commands.
func (o Options) environment(dsn, temporalAddress string) []string {
	set := map[string]string{EnvHome: o.Home, EnvDatabase: dsn}
	if temporalAddress != "" {
		set[EnvTemporal] = temporalAddress
	}
	for name, value := range o.Settings {
		set[name] = value
	}
	var env []string
	for _, pair := range o.Surroundings {
		name, _, _ := strings.Cut(pair, "=")
		if _, replaced := set[name]; !replaced {
			env = append(env, pair)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}

// endControlServer runs the backend's one-shot command: it proves the recorded
// control server and sends it the ownership shutdown (O-002.9).
func endControlServer(ctx context.Context, program string, env []string) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--end-control-server")
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("end the control server: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
