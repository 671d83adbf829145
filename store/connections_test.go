//go:build unix

package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/stack/faultproxy"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

// through is the store behind a proxy.
func (b bundle) through() (*faultproxy.Proxy, *store.Store) {
	b.t.Helper()
	proxy := faultproxy.Start(b.t, b.dsn)
	return proxy, storetest.At(b.t, proxy.DSN())
}

// B-1, S-004.6: the connection dies after COMMIT was sent. The caller is told
// that it is not known, repeats the batch, and every event and the turn's
// outcome are there exactly once.
func TestLostCommitAnswer(t *testing.T) {
	b := setup(t)
	sess := b.running("i", "key", "t-1")
	proxy, cutOff := b.through()
	proxy.Use(func() faultproxy.Fault { return faultproxy.Fault{Kind: faultproxy.AfterCommit} })

	commit := batch(sess, "i", 1, 2, 3)
	commit.Outcomes = []store.Outcome{ended("t-1", "key")}
	_, err := cutOff.CommitEvents(b.ctx, commit)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.EqualValues(t, 3, b.session(sess.ID).Position, "the server did commit")
	proxy.Use(nil)
	committed, err := cutOff.CommitEvents(b.ctx, commit)
	require.NoError(t, err)
	require.EqualValues(t, 3, committed)
	require.Equal(t, []string{"i/1", "i/2", "i/3"}, b.transcript(sess.ID))
	b.state(sess.ID, recovery.StateWaitingForInput, recovery.TaskReview)
	require.Len(t, b.history(sess.ID), 4)
}

// B-23: no statement has a name that a pooler's next client would miss, and
// nothing is left on a connection between transactions.
func TestNothingLivesOnAConnection(t *testing.T) {
	b := setup(t)
	proxy, pooled := b.through()
	b.Store = pooled
	require.NoError(t, b.Migrate(b.ctx))
	sess := b.running("i", "key", "t-1")
	b.commit(batch(sess, "i", 1))
	require.Equal(t, []bool{true}, b.together(batch(sess, "i", 2)))
	b.repair(sess.ID, "i")
	require.NoError(t, b.PutControlServer(b.ctx, b.inst, server, "token"))

	require.NotEmpty(t, proxy.Statements())
	for _, statement := range proxy.Statements() {
		require.Empty(t, statement.Name)
		require.NotRegexp(t, `(?i)^\s*(set|listen|prepare|declare)\b`, statement.Text)
	}
	var locks int
	require.NoError(t, b.direct().QueryRow(b.ctx, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'`).Scan(&locks))
	require.Zero(t, locks)
}

// W-8: whatever keeps Postgres from answering matches ErrUnavailable; what
// Postgres answers does not.
func TestUnavailable(t *testing.T) {
	b := setup(t)
	proxy, s := b.through()
	require.NoError(t, s.Ping(b.ctx))

	gone, cancel := context.WithCancel(b.ctx)
	cancel()
	_, err := s.LiveStandalone(gone, b.inst)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)

	_, err = b.direct().Exec(b.ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	require.NoError(t, err)
	proxy.Stop()
	records, err := s.LiveStandalone(b.ctx, b.inst)
	require.ErrorIs(t, err, store.ErrUnavailable, "an unread inventory is not an empty one (S-002.6)")
	require.Nil(t, records)
	_, err = s.GetControlServer(b.ctx, b.inst)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.False(t, errors.Is(err, store.ErrNoRecord), "O-001.8")
	_, err = s.CommitEvents(b.ctx, store.Batch{Installation: b.inst})
	require.ErrorIs(t, err, store.ErrUnavailable)
}

// A connection string that cannot be read is refused without repeating it.
func TestOpenDoesNotTellTheConnectionString(t *testing.T) {
	_, err := store.Open(t.Context(), "postgres://u:hunter2@host:port/x", store.Options{Logger: nopLogger, Sealer: storetest.NewSealer(t)})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
	_, err = store.Open(t.Context(), "", store.Options{})
	require.Error(t, err)
}
