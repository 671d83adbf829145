//go:build unix

package store_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

func (b bundle) begin(session, execution string, from ...recovery.SessionState) (store.Begun, error) {
	return b.BeginStart(b.ctx, store.Start{
		Installation: b.inst, SessionID: session, ExecutionID: execution, BootID: boot, From: from,
	})
}

func (b bundle) abandon(session, execution string) store.Session {
	b.t.Helper()
	sess, err := b.AbandonStart(b.ctx, store.Abandon{
		Installation: b.inst, SessionID: session, ExecutionID: execution, BootID: boot, Cause: "agent_start",
	})
	require.NoError(b.t, err)
	return sess
}

// R-3, B-17: the intent is in the inventory and the session in STARTING before
// anything is spawned; a repeated call answers the same.
func TestBeginStart(t *testing.T) {
	b := setup(t)
	sess := b.created()
	begun, err := b.begin(sess.ID, "x")
	require.NoError(t, err)
	require.EqualValues(t, 1, begun.Generation)
	require.Equal(t, recovery.StateCreated, begun.Prior)
	require.Equal(t, begun.Session, b.session(sess.ID))
	require.EqualValues(t, 1, begun.Session.Attempt)
	again, err := b.begin(sess.ID, "x")
	require.NoError(t, err)
	require.Equal(t, begun, again)
	require.Equal(t, []string{"CREATED>STARTING start"}, b.history(sess.ID))

	rec := b.record(sess.ID)
	require.Equal(t, "x", rec.ExecutionID)
	require.Equal(t, "/w", rec.Worktree)
	require.Equal(t, "fake", rec.ProfileID)
	require.Equal(t, boot, rec.CreatedByBoot)
	require.Nil(t, rec.StartedAt)
	_, err = b.begin(sess.ID, "y")
	require.ErrorIs(t, err, store.ErrExecutionReplaced)
}

// of concurrent starts of one session, one wins.
func TestConcurrentStarts(t *testing.T) {
	b := setup(t)
	sess := b.created()
	var won, replaced atomic.Int32
	b.atOnce(4, func(i int) {
		_, err := b.begin(sess.ID, fmt.Sprint(i))
		switch {
		case err == nil:
			won.Add(1)
		case errors.Is(err, store.ErrExecutionReplaced):
			replaced.Add(1)
		}
	}, lockSession, sess.ID)
	require.EqualValues(t, 3, replaced.Load())
	require.EqualValues(t, 1, won.Load())
	require.Len(t, b.history(sess.ID), 1)
}

func TestPublishStarted(t *testing.T) {
	b := setup(t)
	sess := b.waiting("x")
	require.Equal(t, recovery.StateWaitingForInput, sess.State)
	require.Equal(t, "provider-x", sess.ProviderSessionID)
	require.Equal(t, recovery.TaskBacklog, sess.TaskState, "nothing was asked of the agent yet")
	require.Equal(t, sess, b.session(sess.ID))
	rec := b.record(sess.ID)
	require.Equal(t, "provider-x", rec.ResumeToken)
	require.Equal(t, 42, rec.PID)
	require.Equal(t, "boot:1", rec.ProcessStart)
	require.Equal(t, "server", rec.ServerIdentity)
	require.NotNil(t, rec.StartedAt)

	again, err := b.PublishStarted(b.ctx, store.Started{Installation: b.inst, SessionID: sess.ID, ExecutionID: "x", ProviderSessionID: "another"})
	require.NoError(t, err)
	require.Equal(t, sess, again)
	require.Equal(t, rec, b.record(sess.ID))
	_, err = b.PublishStarted(b.ctx, store.Started{Installation: b.inst, SessionID: sess.ID, ExecutionID: "y"})
	require.ErrorIs(t, err, store.ErrExecutionReplaced)
}

// a failed first start is FAILED with its cause; the session can be
// started again, as the next generation.
func TestAbandonFirstStart(t *testing.T) {
	b := setup(t)
	sess := b.starting("x")
	after := b.abandon(sess.ID, "x")
	require.Equal(t, recovery.StateFailed, after.State)
	require.Equal(t, "agent_start", after.Cause)
	require.Equal(t, after, b.abandon(sess.ID, "x"))
	require.Empty(t, b.record(sess.ID).ExecutionID)
	require.Equal(t, []string{"CREATED>STARTING start", "STARTING>FAILED agent_start"}, b.history(sess.ID))

	_, err := b.begin(sess.ID, "y")
	require.ErrorIs(t, err, store.ErrConflict)
	begun, err := b.begin(sess.ID, "y", recovery.StateFailed)
	require.NoError(t, err)
	require.EqualValues(t, 2, begun.Generation)
	require.EqualValues(t, 2, begun.Session.Attempt)
}

// a failed resume restores the state before it and keeps the token.
func TestAbandonResumeRestoresThePriorState(t *testing.T) {
	b := setup(t)
	for _, prior := range []recovery.SessionState{recovery.StateInterrupted, recovery.StateCompleted, recovery.StateCancelled} {
		t.Run(string(prior), func(t *testing.T) {
			sess := b.waiting("x" + string(prior))
			b.repair(sess.ID, "x"+string(prior))
			_, err := b.Transition(b.ctx, store.Change{Installation: b.inst, SessionID: sess.ID, From: []recovery.SessionState{recovery.StateInterrupted}, To: prior})
			require.NoError(t, err)
			begun, err := b.begin(sess.ID, "y", prior)
			require.NoError(t, err)
			require.Equal(t, prior, begun.Prior)
			after := b.abandon(sess.ID, "y")
			require.Equal(t, prior, after.State)
			require.Equal(t, sess.ProviderSessionID, after.ProviderSessionID)
			require.Equal(t, sess.ProviderSessionID, b.record(sess.ID).ResumeToken)
		})
	}
}

// what a dead attempt left in flight cannot move the session to STARTING
// after its compensation, whether the intent had been written or not.
func TestAbandonedExecutionNeverBegins(t *testing.T) {
	b := setup(t)
	sess := b.created()
	b.abandon(sess.ID, "x")
	_, err := b.begin(sess.ID, "x")
	require.ErrorIs(t, err, store.ErrExecutionReplaced)
	begun, err := b.begin(sess.ID, "y")
	require.NoError(t, err)
	require.EqualValues(t, 1, begun.Generation)
	b.abandon(sess.ID, "y")
	_, err = b.begin(sess.ID, "y", recovery.StateFailed)
	require.ErrorIs(t, err, store.ErrExecutionReplaced)
	b.state(sess.ID, recovery.StateFailed, recovery.TaskBacklog)
}

// the compensation leaves alone what another transition decided, and a
// newer execution.
func TestAbandonLeavesOthersAlone(t *testing.T) {
	b := setup(t)
	published := b.waiting("x")
	require.Equal(t, published, b.abandon(published.ID, "x"))
	require.Equal(t, "x", b.record(published.ID).ExecutionID)

	stopped := b.starting("z")
	_, err := b.Transition(b.ctx, store.Change{Installation: b.inst, SessionID: stopped.ID, From: []recovery.SessionState{recovery.StateStarting}, To: recovery.StateCancelled, Cause: "user"})
	require.NoError(t, err)
	require.Equal(t, recovery.StateCancelled, b.abandon(stopped.ID, "z").State)

	newer := b.starting("new")
	require.Equal(t, newer, b.abandon(newer.ID, "old"))
	require.Equal(t, "new", b.record(newer.ID).ExecutionID)
}

// the compare-and-set refuses a state that is not expected, and writes
// nothing.
func TestTransitionIsCompareAndSet(t *testing.T) {
	b := setup(t)
	sess := b.created()
	done := recovery.TaskDone
	change := store.Change{Installation: b.inst, SessionID: sess.ID, From: []recovery.SessionState{recovery.StateCreated, recovery.StateFailed}, To: recovery.StateCompleted, TaskTo: &done, BootID: boot, Cause: "user\x00"}
	after, err := b.Transition(b.ctx, change)
	require.NoError(t, err)
	require.Equal(t, after, b.session(sess.ID))
	require.Equal(t, recovery.TaskDone, after.TaskState)
	_, err = b.Transition(b.ctx, change)
	var conflict *store.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, recovery.StateCompleted, conflict.Current)
	require.Equal(t, []string{"CREATED>COMPLETED user\uFFFD"}, b.history(sess.ID))
	change.SessionID = "unknown"
	_, err = b.Transition(b.ctx, change)
	require.ErrorIs(t, err, store.ErrNoSession)
}
