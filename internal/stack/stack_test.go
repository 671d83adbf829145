package stack

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// down is Down as another process's user runs it.
func (p place) down(t *testing.T, leaveAgents bool) error {
	t.Setenv(envRole, roleBack) // for the one-shot command only
	return Down(t.Context(), p.home, leaveAgents, zap.NewNop())
}

// Each way to end a stack leaves no process of it. The ways share one home, as
// one user's would, and one database cluster, which takes long to make.
func TestWaysToEnd(t *testing.T) {
	p := newPlace(t)
	t.Run("interrupt", p.interruptEndsEverything)
	t.Run("down after a kill", p.downEndsWhatAKilledUpLeft)
	t.Run("down with agents left", p.downEndsAgentsThatWereLeft)
	t.Run("backend that does not start", p.brokenBackendIsTold)
}

// What a backend says when it does not start reaches the reader.
func (p place) brokenBackendIsTold(t *testing.T) {
	said, err := p.upCommand(envBreak + "=1").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "a setting is wrong")
	p.requireNoPostgres(t)
	require.ErrorIs(t, p.down(t, false), ErrNotUp)
}

// The control server is ended while Postgres still runs.
func (p place) interruptEndsEverything(t *testing.T) {
	up := p.up(t)
	all := p.processes(t)
	require.ErrorIs(t, startAgain(p), ErrRunning)
	require.NoError(t, up.Process.Signal(syscall.SIGTERM))
	require.NoError(t, up.Wait())
	requireGone(t, all)
	p.requireNoPostgres(t)
	p.takeEnded(t)
	require.ErrorIs(t, p.down(t, false), ErrNotUp)
}

// takeEnded checks that the one-shot command ran, with a database.
func (p place) takeEnded(t *testing.T) {
	t.Helper()
	file := filepath.Join(p.home, endedFile)
	dsn, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotEmpty(t, dsn)
	require.NoError(t, os.Remove(file))
}

func startAgain(p place) error {
	_, err := Start(context.Background(), Options{Home: p.home, Data: p.data, Backend: os.Args[0], Logger: zap.NewNop()})
	return err
}

// Down ends a stack whose own process was killed; before that, none is started
// beside the rest of it.
func (p place) downEndsWhatAKilledUpLeft(t *testing.T) {
	up := p.up(t)
	all := p.processes(t)
	require.NoError(t, up.Process.Kill())
	require.Error(t, up.Wait())
	require.ErrorIs(t, startAgain(p), ErrLeftOver)
	require.NoError(t, p.down(t, false))
	requireGone(t, all)
	p.requireNoPostgres(t)
	p.takeEnded(t)
	require.ErrorIs(t, p.down(t, false), ErrNotUp)
}

// Agents that were left are ended by a later Down, which starts Postgres for it
// because their record lies there.
func (p place) downEndsAgentsThatWereLeft(t *testing.T) {
	up := p.up(t, envLeave+"=1")
	all := p.processes(t)
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	require.NoError(t, p.down(t, true))
	require.NoError(t, <-ended)
	requireGone(t, all)
	p.requireNoPostgres(t)
	require.NoFileExists(t, filepath.Join(p.home, endedFile))

	// A start that fails does not forget them.
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	require.Error(t, startAgain(p))
	t.Setenv("PATH", path)

	require.NoError(t, p.down(t, false))
	p.takeEnded(t)
	p.requireNoPostgres(t)
}

// A pid that belongs to another process by now is neither believed nor ended
// (B-12).
func TestAReusedPIDIsLeftAlone(t *testing.T) {
	own, err := processOf(os.Getpid())
	require.NoError(t, err)
	alive, err := own.alive()
	require.NoError(t, err)
	require.True(t, alive)
	own.Start = "another boot:1"
	alive, err = own.alive()
	require.NoError(t, err)
	require.False(t, alive)
	require.NoError(t, own.end(t.Context()))
}

func TestEnvironmentOfTheBackend(t *testing.T) {
	env := Options{
		Home: "/h", Settings: map[string]string{EnvServer: "127.0.0.1:0"},
		Surroundings: []string{"PATH=/bin", EnvHome + "=/other", EnvServer + "=127.0.0.1:1"},
	}.environment("postgres://x", "127.0.0.1:7233")
	require.ElementsMatch(t, []string{
		"PATH=/bin", EnvHome + "=/h", EnvServer + "=127.0.0.1:0", EnvDatabase + "=postgres://x", EnvTemporal + "=127.0.0.1:7233",
	}, env)
}
