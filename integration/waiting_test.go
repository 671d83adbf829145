package integration

import (
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// W-8: with Postgres and then Temporal away the listener is up, the status page
// says what is waited for, requests are refused retryably, and recovery runs by
// itself once they are there; the agents are not touched meanwhile.
func TestTheBackendWaitsForItsPeers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start().serving()
	a := w.agent("survives")
	a.prompt("one", "stream until file go every 5ms")
	w.backend.kill()

	dsn, postgresBack := postgresAway(w)
	address, temporalBack := temporalAway(w)
	b := w.start(dsn, address)
	waits := func(phase userapi.Phase) {
		t.Helper()
		w.eventually("the backend says that it is "+string(phase), func() bool { return b.answers() && b.status.Phase == phase })
		require.NotEmpty(t, b.status.WaitingFor)
		_, err := b.client.Sessions(t.Context())
		var refusal *userapi.Error
		require.ErrorAs(t, err, &refusal)
		require.True(t, refusal.Retryable)
		require.False(t, gone(a.pid, w.seen[a.pid]), "the agent goes on")
	}
	waits(userapi.PhaseWaitingPostgres)
	postgresBack()
	waits(userapi.PhaseWaitingTemporal)
	temporalBack()

	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 1}, b.serving().status.Recovery.Counts)
	a.touch("go")
	a.ended("one")
	a.unharmed()
	b.kill()
}

// postgresAway returns the setting of a Postgres that is not there until back is
// called.
func postgresAway(w *world) (setting string, back func()) {
	w.t.Helper()
	dsn, err := url.Parse(w.settings["KANDEV_DATABASE_DSN"])
	require.NoError(w.t, err)
	query := dsn.Query()
	sockets := query.Get("host")
	require.NotEmpty(w.t, sockets, "the tests' Postgres listens on a Unix socket")
	away, err := os.MkdirTemp("/tmp", "kandev-away-")
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, os.RemoveAll(away)) })
	query.Set("host", filepath.Join(away, "s"))
	dsn.RawQuery = query.Encode()
	return "KANDEV_DATABASE_DSN=" + dsn.String(), func() {
		w.t.Helper()
		require.NoError(w.t, os.Symlink(sockets, filepath.Join(away, "s")))
	}
}

// temporalAway returns the setting of a Temporal that is not there until back is
// called.
func temporalAway(w *world) (setting string, back func()) {
	w.t.Helper()
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	address := reserved.Addr().String()
	require.NoError(w.t, reserved.Close())
	return "TEMPORAL_ADDRESS=" + address, func() {
		w.t.Helper()
		relay(w.t, address, w.settings["TEMPORAL_ADDRESS"])
	}
}

// relay forwards connections until the test ends.
func relay(t *testing.T, from, to string) {
	t.Helper()
	listener, err := net.Listen("tcp", from)
	require.NoError(t, err)
	var mu sync.Mutex
	var open []net.Conn
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				running.Go(func() {
					defer pair[1].Close()
					if _, err := io.Copy(pair[1], pair[0]); err != nil {
						return // cut: the peer sees its connection end
					}
				})
			}
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
}
