//go:build unix

package store_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

// relay passes one store's connections on to Postgres and can cut them when a
// statement goes by.
type relay struct {
	listener net.Listener
	target   string
	lock     sync.Mutex
	cutAfter string // cut once the server has got this statement, before it answers
	seen     []string
	all      sync.WaitGroup
}

func startRelay(t *testing.T, dsn string) (*relay, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	query := u.Query()
	r := &relay{target: filepath.Join(query.Get("host"), ".s.PGSQL."+query.Get("port"))}
	dir, err := os.MkdirTemp("/tmp", "relay") // a socket's path has to be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	r.listener, err = net.Listen("unix", filepath.Join(dir, ".s.PGSQL."+query.Get("port")))
	require.NoError(t, err)
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	r.all.Go(r.accept)
	return r, u.String()
}

func (r *relay) stop(t *testing.T) {
	require.NoError(t, r.listener.Close())
	r.all.Wait()
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.all.Go(func() { r.serve(client) })
	}
}

func (r *relay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", r.target)
	if err != nil {
		return
	}
	defer server.Close()
	var back sync.WaitGroup
	back.Go(func() { io.Copy(client, server); client.Close() })
	defer back.Wait()
	defer server.Close()
	startup := true
	for {
		message, err := readMessage(client, startup)
		if err != nil {
			return
		}
		startup = false
		cut := r.note(message)
		if cut {
			client.Close() // the answer has nowhere to go
		}
		if _, err := server.Write(message); err != nil || cut {
			// Half-closing lets the server finish what it has got.
			server.(*net.UnixConn).CloseWrite()
			back.Wait()
			return
		}
	}
}

// note remembers Parse and Query messages, and tells whether to cut here.
func (r *relay) note(message []byte) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	var text string
	switch message[0] {
	case 'Q':
		text = string(message[5 : len(message)-1])
	case 'P':
		text = "name=" + cString(message[5:]) // the name of a prepared statement
	}
	if text == "" {
		return false
	}
	r.seen = append(r.seen, text)
	if text == r.cutAfter {
		r.cutAfter = ""
		return true
	}
	return false
}

func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

func readMessage(conn net.Conn, startup bool) ([]byte, error) {
	header := make([]byte, 5)
	if startup {
		header = header[:4]
	}
	if _, err := io.ReadFull(conn, header); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[len(header)-4:])
	body := make([]byte, length-4)
	_, err := io.ReadFull(conn, body)
	return append(header, body...), err
}

// B-1, S-004.6: the connection dies after COMMIT was sent. The caller is told
// that it is not known, repeats the batch, and every event and the turn's
// outcome are there exactly once.
func TestLostCommitAnswer(t *testing.T) {
	b := setup(t)
	sess := b.running("i", "key", "t-1")
	between, dsn := startRelay(t, b.dsn)
	defer between.stop(t)
	cutOff, err := store.Open(b.ctx, dsn, store.Options{Logger: nopLogger, Sealer: storetest.NewSealer(t)})
	require.NoError(t, err)
	defer cutOff.Close()

	commit := batch(sess, "i", 1, 2, 3)
	commit.Outcomes = []store.Outcome{ended("t-1", "key")}
	between.lock.Lock()
	between.cutAfter = "commit"
	between.lock.Unlock()
	_, err = cutOff.CommitEvents(b.ctx, commit)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Eventually(t, func() bool { return b.session(sess.ID).Position == 3 }, 5*time.Second, 5*time.Millisecond,
		"the server did commit")
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
	between, dsn := startRelay(t, b.dsn)
	defer between.stop(t)
	pooled, err := store.Open(b.ctx, dsn, store.Options{Logger: nopLogger, Sealer: storetest.NewSealer(t)})
	require.NoError(t, err)
	defer pooled.Close()
	b.Store = pooled
	require.NoError(t, b.Migrate(b.ctx))
	sess := b.running("i", "key", "t-1")
	b.commit(batch(sess, "i", 1))
	b.repair(sess.ID, "i")
	require.NoError(t, b.PutControlServer(b.ctx, b.inst, server, "token"))

	between.lock.Lock()
	defer between.lock.Unlock()
	require.NotEmpty(t, between.seen)
	for _, text := range between.seen {
		if len(text) >= 5 && text[:5] == "name=" {
			require.Equal(t, "name=", text, "a named statement")
		} else {
			require.NotRegexp(t, `(?i)^\s*(set|listen|prepare|declare)\b`, text)
		}
	}
	var locks int
	require.NoError(t, b.direct().QueryRow(b.ctx, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'`).Scan(&locks))
	require.Zero(t, locks)
}

// W-8: whatever keeps Postgres from answering matches ErrUnavailable; what
// Postgres answers does not.
func TestUnavailable(t *testing.T) {
	b := setup(t)
	between, dsn := startRelay(t, b.dsn)
	s, err := store.Open(b.ctx, dsn, store.Options{Logger: nopLogger, Sealer: storetest.NewSealer(t)})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Ping(b.ctx))

	gone, cancel := context.WithCancel(b.ctx)
	cancel()
	_, err = s.LiveStandalone(gone, b.inst)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)

	_, err = b.direct().Exec(b.ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	require.NoError(t, err)
	between.stop(t)
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
