package temporal_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/stack/temporal"
	"github.com/kandev/recovery/internal/stack/temporaltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg temporal.Config) *temporal.Server {
	program, err := temporaltest.Find()
	require.NoError(t, err)
	cfg.Executable, cfg.EndWithParent, cfg.Logger = program, true, zap.NewNop()
	s, err := temporal.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

// A stopped server leaves no process, no listener and its durable state, and a
// busy preferred port is avoided.
func TestStartAndStop(t *testing.T) {
	busy, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	dir := t.TempDir()
	cfg := temporal.Config{Dir: dir, DBFile: filepath.Join(dir, "temporal.db"), Port: busy.Addr().(*net.TCPAddr).Port}
	s := start(t, cfg)
	require.NotEqual(t, busy.Addr().String(), s.Address)

	page, err := http.Get(s.UIAddress)
	require.NoError(t, err)
	require.NoError(t, page.Body.Close())
	require.Equal(t, http.StatusOK, page.StatusCode)
	http.DefaultClient.CloseIdleConnections()

	require.NoError(t, s.Stop(t.Context()))
	<-s.Exited()
	for _, address := range []string{s.Address, s.UIAddress[len("http://"):]} {
		_, err = net.DialTimeout("tcp4", address, time.Second)
		require.Error(t, err, "nothing may listen at %s any more", address)
	}
	require.FileExists(t, cfg.DBFile)
}

func TestPreferredPortIsTakenWhenFree(t *testing.T) {
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	s := start(t, temporal.Config{Dir: t.TempDir(), Port: port, Headless: true})
	require.Equal(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), s.Address)
	require.Empty(t, s.UIAddress)
	c, err := client.Dial(client.Options{HostPort: s.Address})
	require.NoError(t, err)
	c.Close()
}

// A program that ends at once is reported with the place of its log.
func TestEarlyEndIsReported(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "temporal")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o755))
	_, err := temporal.Start(t.Context(), temporal.Config{Dir: dir, Executable: broken, Logger: zap.NewNop()})
	require.ErrorContains(t, err, filepath.Join(dir, "temporal.log"))
}

func TestMissingProgramHasARemedy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := temporal.Start(t.Context(), temporal.Config{Dir: t.TempDir(), Logger: zap.NewNop()})
	require.ErrorIs(t, err, temporal.ErrMissing)
	require.ErrorContains(t, err, "make setup")
}
