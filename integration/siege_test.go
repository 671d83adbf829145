package integration

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

// siege is an adoptable control server with an agent at work, and no backend.
// Tests bend what leads to it, see a backend refuse, and mend it again.
type siege struct {
	*world
	agent    *agent
	db       *store.Store
	record   store.ControlServer
	token    string
	resolved string             // the home, as the server knows it
	proof    wire.ProveResponse // that the server gave once
}

func besiege(w *world) *siege {
	w.t.Helper()
	s := &siege{world: w}
	w.start().serving()
	s.db = w.store()
	s.agent = w.agent("survives")
	s.agent.prompt("one", "stream until file go every 5ms")
	w.backend.kill()
	s.record, s.token = s.recorded()
	var err error
	s.resolved, err = filepath.EvalSymlinks(w.home)
	require.NoError(w.t, err)
	s.proof = ask(w.t, s.record.Endpoint, s.record.RotationID)
	return s
}

func (s *siege) identity() wire.Identity {
	return wire.Identity{
		ServerIdentity: s.record.ServerIdentity, Capabilities: wire.Capabilities(),
		UnownedPeriodMS: (10 * time.Minute).Milliseconds(),
	}
}

func (s *siege) installation() string { return s.backend.status.Installation }

// recorded is the record with its credential, as they are now.
func (s *siege) recorded() (store.ControlServer, string) {
	s.t.Helper()
	record, err := s.db.GetControlServer(s.t.Context(), s.installation())
	require.NoError(s.t, err)
	token, err := s.db.Credential(s.t.Context(), s.installation(), record.SecretRef)
	require.NoError(s.t, err)
	return record, token
}

// bend changes the database behind the product's back.
func (w *world) bend(sql string, args ...any) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.settings["KANDEV_DATABASE_DSN"])
	require.NoError(w.t, err)
	defer conn.Close(w.t.Context())
	tag, err := conn.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
	require.EqualValues(w.t, 1, tag.RowsAffected())
}

// name makes the record name the peer, as if it had taken the port of a server
// that is gone, and its certificate too if it has one.
func (s *siege) name(p *peer) {
	s.t.Helper()
	fingerprint := p.fingerprint
	if fingerprint == "" {
		fingerprint = s.record.Fingerprint
	}
	s.bend(`UPDATE control_server_records SET endpoint = $1, fingerprint = $2`, p.endpoint(), fingerprint)
}

// sealed is the stored secret of the besieged server, byte for byte; nothing if
// it is not there.
func (s *siege) sealed() []byte {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.settings["KANDEV_DATABASE_DSN"])
	require.NoError(s.t, err)
	defer conn.Close(s.t.Context())
	rows, err := conn.Query(s.t.Context(), `SELECT sealed FROM secrets WHERE ref = $1`, s.record.SecretRef)
	require.NoError(s.t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	require.NoError(s.t, err)
	return bytes.Join(found, nil)
}

// mend ends the server that the newest backend started, and makes everything as
// it was before the siege. Nothing of the mending contacts the besieged server.
func (s *siege) mend() {
	s.t.Helper()
	s.backend.kill()
	own, token := s.recorded()
	require.NotEqual(s.t, s.record.ServerIdentity, own.ServerIdentity, "a backend has started a server of its own")
	shutDown(s.world, own, token)
	require.NoError(s.t, s.db.PutControlServer(s.t.Context(), s.installation(), s.record, s.token))
}

// shutDown ends a server by the ownership shutdown and waits until it is gone.
func shutDown(w *world, record store.ControlServer, token string) {
	w.t.Helper()
	server := client.New(client.Config{
		Endpoint: record.Endpoint, Fingerprint: record.Fingerprint, Credential: token, HTTPTimeout: patience,
	})
	defer server.Close()
	require.NoError(w.t, server.Shutdown(w.t.Context()))
	w.eventually("the control server is gone", func() bool { return gone(record.PID, record.ProcessStart) })
}

// within has the world fail the sub-test that it serves.
func (w *world) within(t *testing.T) {
	outer := w.t
	w.t = t
	t.Cleanup(func() { w.t = outer })
}

// standsAlone checks that the newest backend has a server of its own on a port
// that is neither the besieged one's nor among those taken, that the record
// names it, and that the agent, its session and the old credential are as they
// were.
func (s *siege) standsAlone(secret []byte, taken ...string) {
	s.t.Helper()
	status := s.backend.status
	require.False(s.t, status.Control.Adopted)
	own, _ := s.recorded()
	require.Equal(s.t, status.Control.ServerIdentity, own.ServerIdentity, "the record names the server in use")
	require.NotEqual(s.t, s.record.ServerIdentity, own.ServerIdentity)
	require.NotContains(s.t, append(taken, portOf(s.t, s.record.Endpoint)), portOf(s.t, own.Endpoint))
	require.NotEqual(s.t, s.record.SecretRef, own.SecretRef)
	require.Equal(s.t, secret, s.sealed(), "the old secret is neither deleted nor overwritten")

	require.False(s.t, gone(s.agent.pid, s.seen[s.agent.pid]), "the agent goes on")
	require.Equal(s.t, map[recovery.SessionOutcome]int{recovery.OutcomeUnknown: 1}, status.Recovery.Counts)
	require.Equal(s.t, recovery.StateRunning, s.agent.view().State, "nothing is repaired on a guess")
	refused(s.t, s.agent, userapi.CodeRecovering)
}

// endures checks that the besieged server was left alone all the while: it is
// adopted by the next rotation of its own count, and its agent has lost nothing.
func (s *siege) endures() {
	s.t.Helper()
	require.True(s.t, s.start().serving().status.Control.Adopted)
	adopted, _ := s.recorded()
	require.Equal(s.t, s.record.ServerIdentity, adopted.ServerIdentity)
	require.Equal(s.t, s.record.RotationID+1, adopted.RotationID)
	s.agent.touch("go")
	require.Equal(s.t, "end_turn", s.agent.ended("one").Turn.StopReason)
	s.agent.unharmed()
}
