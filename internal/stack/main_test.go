package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/internal/stack/temporaltest"
	"github.com/kandev/recovery/userapi"
)

const (
	envRole  = "STACK_TEST_ROLE"  // what the test binary is to be
	envData  = "STACK_TEST_DATA"  // where its data lies
	envLeave = "STACK_TEST_LEAVE" // leave agents
	envBreak = "STACK_TEST_BREAK" // the backend does not start
	roleUp   = "up"
	roleBack = "backend"
)

// TestMain lets the test binary be the process that runs a stack, and a backend
// that does no more than say where it is.
func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(envRole) {
	case roleUp:
		err = beUp()
	case roleBack:
		err = beBackend()
	default:
		goleak.VerifyTestMain(m)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beUp() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s, err := Start(ctx, Options{
		Home: os.Getenv(EnvHome), Data: os.Getenv(envData), Backend: self, Surroundings: os.Environ(),
		Settings: map[string]string{envRole: roleBack}, LeaveAgents: os.Getenv(envLeave) != "", Logger: zap.NewNop(),
	})
	if err != nil {
		return err
	}
	b, err := s.StartBackend(ctx)
	if err != nil {
		return errors.Join(err, s.Stop(context.Background()))
	}
	fmt.Println("ready")
	<-ctx.Done()
	if err := b.Stop(context.Background()); err != nil {
		return err
	}
	return s.Stop(context.Background())
}

// endedFile is what the backend's one-shot command leaves behind.
const endedFile = "control-server-ended"

func beBackend() error {
	h, err := home.Open(os.Getenv(EnvHome))
	if err != nil {
		return err
	}
	defer h.Close()
	if slices.Contains(os.Args, "--end-control-server") {
		return os.WriteFile(filepath.Join(h.Path(), endedFile), []byte(os.Getenv(EnvDatabase)), 0o600)
	}
	if os.Getenv(envBreak) != "" {
		return errors.New("a setting is wrong")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(userapi.Status{BootID: "boot-1"}); err != nil {
			panic(err)
		}
	}))
	defer server.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err = h.WriteRuntime(home.Runtime{Address: server.Listener.Addr().String(), PID: os.Getpid(), BootID: "boot-1"})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return h.RemoveRuntime()
}

// place is one home with its data, reachable for the user that Postgres runs as.
type place struct{ home, data string }

func newPlace(t *testing.T) place {
	temporal, err := temporaltest.Find()
	require.NoError(t, err)
	// The program under test looks on PATH.
	t.Setenv("PATH", filepath.Dir(temporal)+string(os.PathListSeparator)+os.Getenv("PATH"))
	dir, err := os.MkdirTemp("", "stack-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return place{home: filepath.Join(dir, "home"), data: dir}
}

// upCommand runs a stack in a process of its own.
func (p place) upCommand(env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"="+roleUp, EnvHome+"="+p.home, envData+"="+p.data)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// up returns such a process once its stack is ready.
func (p place) up(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := p.upCommand(env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line := make([]byte, len("ready\n"))
	_, err = out.Read(line)
	require.NoError(t, err, "the stack did not come up")
	return cmd
}

// processes of the stack, as it wrote them down.
func (p place) processes(t *testing.T) []process {
	s, err := readState(p.home)
	require.NoError(t, err)
	all := []process{s.Up, s.Backend, s.Temporal}
	for _, one := range all {
		require.NotZero(t, one.PID)
	}
	return all
}

func requireGone(t *testing.T, all []process) {
	t.Helper()
	for _, one := range all {
		alive, err := one.alive()
		require.NoError(t, err)
		require.False(t, alive, "process %d still runs", one.PID)
	}
}

func (p place) requireNoPostgres(t *testing.T) {
	t.Helper()
	pids, err := filepath.Glob(filepath.Join(p.data, "postgres", "*", "postmaster.pid"))
	require.NoError(t, err)
	direct, err := filepath.Glob(filepath.Join(p.data, "postgres", "postmaster.pid"))
	require.NoError(t, err)
	require.Empty(t, append(pids, direct...))
}
