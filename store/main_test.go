//go:build unix

package store_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/credential"
	"github.com/kandev/recovery/internal/stack/postgrestest"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

func TestMain(m *testing.M) {
	code := postgrestest.Main(m)
	if err := goleak.Find(); err != nil {
		println("leaked goroutines:", err.Error())
		code = 1
	}
	os.Exit(code)
}

const boot = "boot-1"

var nopLogger = zap.NewNop()

// bundle is a store with one installation and one profile.
type bundle struct {
	*store.Store
	t    *testing.T
	ctx  context.Context
	dsn  string
	inst string
}

func setup(t *testing.T) bundle {
	t.Helper()
	return setupAt(t, storetest.DSN(t))
}

func setupAt(t *testing.T, dsn string) bundle {
	t.Helper()
	b := bundle{Store: storetest.At(t, dsn), t: t, ctx: t.Context(), dsn: dsn}
	return b.installation("inst-" + credential.NewID())
}

// installation is the same store, seen by another installation.
func (b bundle) installation(id string) bundle {
	b.inst = id
	require.NoError(b.t, b.EnsureInstallation(b.ctx, id))
	require.NoError(b.t, b.PutProfile(b.ctx, id, store.Profile{ID: "fake", Agent: "fake", Command: []string{"fake"}}))
	return b
}

func (b bundle) created() store.Session {
	b.t.Helper()
	sess, err := b.CreateSession(b.ctx, store.NewSession{
		Installation: b.inst, Title: "a task", ProfileID: "fake", Workspace: "/w", Roots: []string{"/w", "/src"},
	})
	require.NoError(b.t, err)
	return sess
}

// starting has an intent, waiting an agent, running an open turn.
func (b bundle) starting(execution string) store.Session {
	b.t.Helper()
	begun, err := b.BeginStart(b.ctx, store.Start{
		Installation: b.inst, SessionID: b.created().ID, ExecutionID: execution, BootID: boot,
	})
	require.NoError(b.t, err)
	return begun.Session
}

func (b bundle) waiting(execution string) store.Session {
	b.t.Helper()
	sess, err := b.PublishStarted(b.ctx, store.Started{
		Installation: b.inst, SessionID: b.starting(execution).ID, ExecutionID: execution, BootID: boot,
		ServerIdentity: "server", PID: 42, ProcessStart: "boot:1", ProviderSessionID: "provider-" + execution,
	})
	require.NoError(b.t, err)
	return sess
}

func (b bundle) running(execution, key, turnID string) store.Session {
	b.t.Helper()
	sess := b.waiting(execution)
	b.prompt(sess.ID, key, turnID)
	return b.session(sess.ID)
}

func (b bundle) prompt(session, key, turnID string) {
	b.t.Helper()
	_, created, err := b.RecordTurn(b.ctx, b.inst, session, key, blocks, boot)
	require.NoError(b.t, err)
	require.True(b.t, created)
	require.NoError(b.t, b.MarkTurnSent(b.ctx, b.inst, session, key, turnID))
}

func (b bundle) session(id string) store.Session {
	b.t.Helper()
	sess, err := b.GetSession(b.ctx, b.inst, id)
	require.NoError(b.t, err)
	return sess
}

func (b bundle) record(session string) store.InventoryRecord {
	b.t.Helper()
	rec, err := b.GetRecord(b.ctx, b.inst, session)
	require.NoError(b.t, err)
	return rec
}

// history is the session's transitions as "FROM>TO cause".
func (b bundle) history(session string) (list []string) {
	b.t.Helper()
	transitions, err := b.Transitions(b.ctx, b.inst, session)
	require.NoError(b.t, err)
	for i, tr := range transitions {
		require.EqualValues(b.t, i+1, tr.Version, "versions have no holes")
		require.NotZero(b.t, tr.At)
		list = append(list, string(tr.From)+">"+string(tr.To)+" "+tr.Cause)
	}
	require.EqualValues(b.t, len(transitions), b.session(session).StateVersion)
	return list
}

func (b bundle) state(session string, state recovery.SessionState, task recovery.TaskState) {
	b.t.Helper()
	sess := b.session(session)
	require.Equal(b.t, state, sess.State)
	require.Equal(b.t, task, sess.TaskState)
}

func (b bundle) lastTurn(session string) store.Turn {
	b.t.Helper()
	turn, err := b.LastTurn(b.ctx, b.inst, session)
	require.NoError(b.t, err)
	require.NotNil(b.t, turn)
	return *turn
}

// direct is a connection beside the store.
func (b bundle) direct() *pgx.Conn {
	b.t.Helper()
	conn, err := pgx.Connect(b.ctx, b.dsn)
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(b.t, conn.Close(ctx))
	})
	return conn
}

// atOnce runs n calls that all wait for the row that the statement locks, and
// lets them go together. A pool has at least four connections.
func (b bundle) atOnce(n int, do func(i int), lock string, args ...any) {
	b.t.Helper()
	tx, err := b.direct().Begin(b.ctx)
	require.NoError(b.t, err)
	_, err = tx.Exec(b.ctx, lock, args...)
	require.NoError(b.t, err)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	watch := b.direct()
	assert.Eventually(b.t, func() bool {
		var blocked int
		err := watch.QueryRow(b.ctx, `
			SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&blocked)
		return err == nil && blocked == n
	}, 20*time.Second, 5*time.Millisecond, "%d calls wait for the lock", n)
	require.NoError(b.t, tx.Commit(b.ctx))
	all.Wait()
}

const (
	lockSession = `SELECT FROM task_sessions WHERE id = $1 FOR UPDATE`
	lockTask    = `SELECT FROM tasks WHERE id = $1 FOR UPDATE`
)

var blocks = []byte(`[{"type":"text","text":"hello"}]`)

func ended(turnID, key string) store.Outcome {
	return store.Outcome{TurnID: turnID, Key: key, StopReason: "end_turn", EndedAt: time.Now()}
}
