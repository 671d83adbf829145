//go:build unix

package launch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"github.com/kandev/recovery/agentctl/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is an executable that is no control server.
func script(t *testing.T, text string) Spec {
	t.Helper()
	home := t.TempDir()
	path := filepath.Join(home, "child")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return Spec{
		Executable: path, Config: wire.StartConfig{Home: home, Detached: true},
		HTTPTimeout: time.Second, Logger: zaptest.NewLogger(t),
	}
}

// B-26: whatever goes wrong before the first credential, the child is ended and
// reaped; goleak sees that nothing waits for it.
func TestStartFailures(t *testing.T) {
	t.Run("ends at once", func(t *testing.T) {
		_, err := Start(t.Context(), script(t, "exit 3"))
		require.ErrorIs(t, err, ErrNotReady)
	})
	t.Run("refuses", func(t *testing.T) {
		_, err := Start(t.Context(), script(t, `echo '{"error":{"code":"bad_request","message":"m"}}' >&3; sleep 60`))
		require.ErrorIs(t, err, ErrNotReady)
		require.ErrorIs(t, err, &wire.Error{Code: wire.CodeBadRequest})
	})
	t.Run("reports nonsense", func(t *testing.T) {
		for _, line := range []string{"ready", "{}", `{"endpoint":"127.0.0.1:1"}`} {
			_, err := Start(t.Context(), script(t, "echo '"+line+"' >&3; sleep 60"))
			require.ErrorIs(t, err, ErrNotReady)
		}
	})
	t.Run("never reports", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := Start(ctx, script(t, "exec sleep 60"))
		require.ErrorIs(t, err, ErrNotReady)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	t.Run("does not answer the handshake", func(t *testing.T) {
		_, err := Start(t.Context(), script(t,
			`echo '{"endpoint":"127.0.0.1:1","fingerprint":"f","server_identity":"s"}' >&3; exec sleep 60`))
		require.Error(t, err)
	})
	t.Run("cannot be executed", func(t *testing.T) {
		spec := script(t, "")
		spec.Executable += "-not"
		_, err := Start(t.Context(), spec)
		require.ErrorIs(t, err, os.ErrNotExist)
		require.NotContains(t, err.Error(), spec.Config.Home)
	})
}

// B-14, S-005.1: a short list of variables goes over, the backend's secrets and
// a stale parent pipe do not.
func TestEnvironment(t *testing.T) {
	require.Equal(t,
		[]string{"PATH=/bin", "LC_ALL=C", "HOME=/h", "SSH_AUTH_SOCK=/s"},
		environment([]string{
			"PATH=/bin", "KANDEV_PARENT_PIPE_FD=7", "LC_ALL=C", "KANDEV_DATABASE_DSN=secret",
			"HOME=/h", "TEMPORAL_API_KEY=secret", "SSH_AUTH_SOCK=/s", "LD_PRELOAD=x", "PATHS=x", "=x", "nonsense",
		}))
}

// S-005.4: survival is available on this platform, and says no reason.
func TestAvailability(t *testing.T) {
	ok, reason := Availability()
	require.True(t, ok)
	require.Empty(t, reason)
}
