//go:build unix

package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

func (b bundle) repair(session, execution string) store.Session {
	b.t.Helper()
	sess, err := b.Repair(b.ctx, store.Repair{
		Installation: b.inst, SessionID: session, ExecutionID: execution, BootID: "boot-2", Cause: "stale",
	})
	require.NoError(b.t, err)
	return sess
}

// S-002.7, S-003.2: a stale record loses its execution and keeps resume token
// and worktree; an open turn is abandoned and its task interrupted.
func TestRepairMidTurn(t *testing.T) {
	b := setup(t)
	sess := b.running("x", "key", "t-1")
	after := b.repair(sess.ID, "x")
	require.Equal(t, b.session(sess.ID), after)
	b.state(sess.ID, recovery.StateInterrupted, recovery.TaskInterrupted)
	require.Equal(t, recovery.TurnAbandoned, b.lastTurn(sess.ID).State)
	rec := b.record(sess.ID)
	require.Empty(t, rec.ExecutionID)
	require.Zero(t, rec.PID)
	require.Empty(t, rec.ProcessStart)
	require.Empty(t, rec.ServerIdentity)
	require.Equal(t, "provider-x", rec.ResumeToken)
	require.Equal(t, "provider-x", after.ProviderSessionID)
	require.Equal(t, "/w", rec.Worktree)
	require.EqualValues(t, 1, rec.Generation)

	history := b.history(sess.ID)
	require.Equal(t, after, b.repair(sess.ID, "x"))
	require.Equal(t, history, b.history(sess.ID))
	applied, _, err := b.ApplyOutcome(b.ctx, b.inst, sess.ID, ended("t-1", "key"), boot)
	require.NoError(t, err)
	require.False(t, applied, "an abandoned turn has ended")
}

// repairing between turns leaves the task in review, and the next start
// shows it there again.
func TestRepairBetweenTurns(t *testing.T) {
	b := setup(t)
	sess := b.running("x", "key", "t-1")
	_, _, err := b.ApplyOutcome(b.ctx, b.inst, sess.ID, ended("t-1", ""), boot)
	require.NoError(t, err)
	b.repair(sess.ID, "x")
	b.state(sess.ID, recovery.StateInterrupted, recovery.TaskReview)
	_, err = b.begin(sess.ID, "y", recovery.StateInterrupted)
	require.NoError(t, err)
	_, err = b.PublishStarted(b.ctx, store.Started{Installation: b.inst, SessionID: sess.ID, ExecutionID: "y", BootID: boot})
	require.NoError(t, err)
	b.state(sess.ID, recovery.StateWaitingForInput, recovery.TaskReview)
	require.Equal(t, "provider-x", b.record(sess.ID).ResumeToken, "R-2: a resume does not change the token")
}

// a task that was interrupted is in review once its session waits again.
func TestResumeAfterAnInterruption(t *testing.T) {
	b := setup(t)
	sess := b.running("x", "key", "t-1")
	b.repair(sess.ID, "x")
	_, err := b.begin(sess.ID, "y", recovery.StateInterrupted)
	require.NoError(t, err)
	b.state(sess.ID, recovery.StateStarting, recovery.TaskInterrupted)
	_, err = b.PublishStarted(b.ctx, store.Started{Installation: b.inst, SessionID: sess.ID, ExecutionID: "y", BootID: boot})
	require.NoError(t, err)
	b.state(sess.ID, recovery.StateWaitingForInput, recovery.TaskReview)
}

// A repair that was decided for one execution leaves a newer one alone.
func TestRepairLeavesANewerExecutionAlone(t *testing.T) {
	b := setup(t)
	sess := b.waiting("new")
	_, err := b.Repair(b.ctx, store.Repair{Installation: b.inst, SessionID: sess.ID, ExecutionID: "old"})
	require.ErrorIs(t, err, store.ErrExecutionReplaced)
	repaired, err := b.RepairIfCurrent(b.ctx, store.Repair{Installation: b.inst, SessionID: sess.ID, ExecutionID: "old"})
	require.NoError(t, err)
	require.False(t, repaired)
	require.Equal(t, sess, b.session(sess.ID))
}

// S-002.8, S-005.3: the inventory of a pass is every session that should have
// an agent, passthrough sessions excluded; read and empty is an answer.
func TestLiveStandalone(t *testing.T) {
	b := setup(t)
	records, err := b.LiveStandalone(b.ctx, b.inst)
	require.NoError(t, err)
	require.Empty(t, records)

	b.created()
	want := []string{b.starting("a").ID, b.waiting("b").ID, b.running("c", "k", "t-1").ID}
	b.repair(b.waiting("d").ID, "d")
	b.abandon(b.starting("e").ID, "e")
	b.passthrough("f")

	records, err = b.LiveStandalone(b.ctx, b.inst)
	require.NoError(t, err)
	var got []string
	for _, r := range records {
		got = append(got, r.SessionID)
		require.Equal(t, b.record(r.SessionID), r)
		require.Equal(t, []string{"/w", "/src"}, r.Roots)
	}
	require.ElementsMatch(t, want, got)
}

// S-005.3: a passthrough session is one only if its row says so; one whose mode
// is not known is guarded and recovered like any other. Every record is in one of
// the two inventories.
func TestTheModeOfASession(t *testing.T) {
	b := setupAt(t, storetest.FreshDSN(t))
	known, unknown := b.passthrough("p"), b.passthrough("q")
	conn := b.direct()
	for _, change := range []string{
		`ALTER TABLE task_sessions ALTER passthrough DROP NOT NULL`,
		`UPDATE task_sessions SET passthrough = NULL WHERE id = '` + unknown + `'`,
	} {
		_, err := conn.Exec(b.ctx, change)
		require.NoError(t, err)
	}

	inventory := func(read func(context.Context, string) ([]store.InventoryRecord, error)) (ids []string) {
		records, err := read(b.ctx, b.inst)
		require.NoError(t, err)
		for _, r := range records {
			ids = append(ids, r.SessionID)
			require.Equal(t, r.Passthrough, b.session(r.SessionID).Passthrough)
		}
		return ids
	}
	require.Equal(t, []string{known}, inventory(b.LivePassthrough))
	require.True(t, b.record(known).Passthrough)
	require.Equal(t, []string{unknown}, inventory(b.LiveStandalone))
	require.False(t, b.record(unknown).Passthrough)
}

// passthrough makes a passthrough session with an intent.
func (b bundle) passthrough(execution string) string {
	b.t.Helper()
	session, err := b.CreateSession(b.ctx, store.NewSession{Installation: b.inst, ProfileID: "fake", Passthrough: true})
	require.NoError(b.t, err)
	_, err = b.begin(session.ID, execution)
	require.NoError(b.t, err)
	return session.ID
}

// W-7, B-22: a user's stop is in the inventory before it acts; a second request
// joins the first.
func TestRequestStop(t *testing.T) {
	b := setup(t)
	request := func(session, id string) (store.InventoryRecord, error) {
		return b.RequestStop(b.ctx, store.StopRequest{Installation: b.inst, SessionID: session, RequestID: id})
	}
	_, err := request(b.created().ID, "r")
	require.ErrorIs(t, err, store.ErrNoRecord)
	sess := b.starting("x")
	rec, err := request(sess.ID, "r-1")
	require.NoError(t, err)
	require.Equal(t, b.record(sess.ID), rec)
	require.True(t, rec.StopRequested)
	require.Equal(t, "x", rec.ExecutionID)
	again, err := request(sess.ID, "r-2")
	require.NoError(t, err)
	require.Equal(t, rec, again)
}

// B-22: a stop that succeeded cancels the open turn and keeps what a resume
// needs; repeated, or late, it changes nothing.
func TestFinishStop(t *testing.T) {
	b := setup(t)
	sess := b.running("x", "key", "t-1")
	_, err := b.RequestStop(b.ctx, store.StopRequest{Installation: b.inst, SessionID: sess.ID, RequestID: "r"})
	require.NoError(t, err)
	end := store.StopEnd{Installation: b.inst, SessionID: sess.ID, ExecutionID: "x", Stopped: true, BootID: boot, Cause: "user"}
	after, err := b.FinishStop(b.ctx, end)
	require.NoError(t, err)
	require.Equal(t, b.session(sess.ID), after)
	b.state(sess.ID, recovery.StateCancelled, recovery.TaskReview)
	require.Equal(t, recovery.TurnCancelled, b.lastTurn(sess.ID).State)
	rec := b.record(sess.ID)
	require.Empty(t, rec.ExecutionID)
	require.False(t, rec.StopRequested)
	require.Equal(t, "provider-x", rec.ResumeToken)

	again, err := b.FinishStop(b.ctx, end)
	require.NoError(t, err)
	require.Equal(t, after, again)
	_, err = b.begin(sess.ID, "y", recovery.StateCancelled)
	require.NoError(t, err)
	late, err := b.FinishStop(b.ctx, end)
	require.NoError(t, err)
	require.Equal(t, recovery.StateStarting, late.State)
}

// A stop that could not stop says so in the history, keeps the record and may
// be asked for again; it does not pretend that the agent is gone.
func TestFinishStopThatFailed(t *testing.T) {
	b := setup(t)
	sess := b.running("x", "key", "t-1")
	_, err := b.RequestStop(b.ctx, store.StopRequest{Installation: b.inst, SessionID: sess.ID, RequestID: "r"})
	require.NoError(t, err)
	for range 2 {
		_, err = b.FinishStop(b.ctx, store.StopEnd{Installation: b.inst, SessionID: sess.ID, ExecutionID: "x", BootID: boot, Cause: "stop_failed"})
		require.NoError(t, err)
	}
	b.state(sess.ID, recovery.StateRunning, recovery.TaskInProgress)
	require.Equal(t, []string{"CREATED>STARTING start", "STARTING>WAITING_FOR_INPUT started", "WAITING_FOR_INPUT>RUNNING prompt", "RUNNING>RUNNING stop_failed"}, b.history(sess.ID))
	rec := b.record(sess.ID)
	require.Equal(t, "x", rec.ExecutionID)
	require.False(t, rec.StopRequested)
	require.Equal(t, recovery.TurnOpen, b.lastTurn(sess.ID).State)
}
