package integration

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
)

// secrets are the references of all stored secrets.
func (w *world) secrets() []string {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.settings["KANDEV_DATABASE_DSN"])
	require.NoError(w.t, err)
	defer conn.Close(w.t.Context())
	rows, err := conn.Query(w.t.Context(), `SELECT ref FROM secrets`)
	require.NoError(w.t, err)
	refs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(w.t, err)
	return refs
}

// O-001.9, O-002.8: adoptions leave one credential secret, and so do servers that
// died in between. One that cannot be unsealed stays as long as its server may
// live, beside the one of the server in use, and goes once its server is proven
// gone.
func TestOneCredentialSecretRemains(t *testing.T) {
	t.Parallel()
	restarts := 1
	if long() {
		restarts = 20
	}
	w := newWorld(t)
	w.start().serving()
	for range restarts {
		w.backend.kill()
		w.start().serving()
		require.Len(t, w.secrets(), 1)
	}
	w.backend.kill()
	first := w.killServer()
	status := w.start().serving().status
	require.Equal(t, recovery.VerdictFresh, status.Recovery.Verdict)
	require.Len(t, w.secrets(), 1)
	require.NotContains(t, w.secrets(), first)

	w.backend.kill()
	s := &siege{world: w, db: w.store()}
	s.record, s.token = s.recorded()
	w.bend(`UPDATE secrets SET sealed = 'garbled'`)
	status = w.start().serving().status
	require.Equal(t, recovery.RefusedCredentialUnavailable, status.Recovery.Reason)
	require.Len(t, w.secrets(), 2)
	require.Equal(t, "garbled", string(s.sealed()))

	w.kill(s.record.PID, s.record.ProcessStart)
	w.backend.kill()
	w.start().serving()
	require.Len(t, w.secrets(), 1)
	require.NotContains(t, w.secrets(), s.record.SecretRef)
}

// killServer ends the recorded control server as a crash does, and returns where
// its credential lies.
func (w *world) killServer() (secretRef string) {
	w.t.Helper()
	record, err := w.store().GetControlServer(w.t.Context(), w.backend.status.Installation)
	require.NoError(w.t, err)
	w.kill(record.PID, record.ProcessStart)
	return record.SecretRef
}

func (w *world) kill(pid int, start string) {
	w.t.Helper()
	found, err := os.FindProcess(pid)
	require.NoError(w.t, err)
	require.NoError(w.t, found.Kill())
	w.eventually("the control server is gone", func() bool { return gone(pid, start) })
}
