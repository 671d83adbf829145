//go:build unix

package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// before is the history of a session with a running turn.
var before = []string{"CREATED>STARTING start", "STARTING>WAITING_FOR_INPUT started", "WAITING_FOR_INPUT>RUNNING prompt"}

func (b bundle) retrack(sess store.Session, change func(*store.Retrack)) store.Retracked {
	b.t.Helper()
	r := store.Retrack{
		Installation: b.inst, SessionID: sess.ID, ExecutionID: "x", BootID: "boot-2",
		ServerIdentity: "server", PID: 43, ProcessStart: "boot:2",
	}
	if change != nil {
		change(&r)
	}
	out, err := b.Publish(b.ctx, r)
	require.NoError(b.t, err)
	require.Equal(b.t, b.session(sess.ID), out.Session)
	return out
}

// S-003.2, S-003.3, S-003.4, S-003.5: a re-tracked session with an open turn stays RUNNING, its
// turn open, its task in progress. S-002.9: again in the same boot, nothing
// changes.
func TestRetrackRunning(t *testing.T) {
	b := setup(t)
	sess := b.running("x", "key", "t-1")
	running := func(r *store.Retrack) { r.State = recovery.StateRunning }
	require.False(t, b.retrack(sess, running).OutcomeApplied)
	b.state(sess.ID, recovery.StateRunning, recovery.TaskInProgress)
	require.Equal(t, recovery.TurnOpen, b.lastTurn(sess.ID).State)
	want := append(before, "RUNNING>RUNNING retracked")
	require.Equal(t, want, b.history(sess.ID))
	rec := b.record(sess.ID)
	require.Equal(t, 43, rec.PID)
	require.Equal(t, "boot-2", rec.TrackedByBoot)
	require.Equal(t, boot, rec.CreatedByBoot)
	b.retrack(sess, running)
	require.Equal(t, want, b.history(sess.ID))
	require.Equal(t, rec, b.record(sess.ID))
	b.retrack(sess, func(r *store.Retrack) { r.State, r.BootID = recovery.StateRunning, "boot-3" })
	require.Equal(t, append(want, "RUNNING>RUNNING retracked"), b.history(sess.ID))
}

// S-004.2: the turn ended while nobody was attached: one transition, straight
// to the resulting state, and none that shows the turn as running.
func TestRetrackWithAKeptOutcome(t *testing.T) {
	b := setup(t)
	sess := b.running("x", "key", "t-1")
	kept := ended("t-1", "key")
	withOutcome := func(r *store.Retrack) { r.Outcome = &kept }
	require.True(t, b.retrack(sess, withOutcome).OutcomeApplied)
	b.state(sess.ID, recovery.StateWaitingForInput, recovery.TaskReview)
	require.Equal(t, recovery.TurnEnded, b.lastTurn(sess.ID).State)
	want := append(before, "RUNNING>WAITING_FOR_INPUT retracked")
	require.Equal(t, want, b.history(sess.ID))
	transitions, err := b.Transitions(b.ctx, b.inst, sess.ID)
	require.NoError(t, err)
	require.Equal(t, "t-1", transitions[3].TurnID)

	require.False(t, b.retrack(sess, withOutcome).OutcomeApplied)
	applied, _, err := b.ApplyOutcome(b.ctx, b.inst, sess.ID, kept, "boot-2")
	require.NoError(t, err)
	require.False(t, applied, "S-004.4: the delivered event comes second")
	require.Equal(t, want, b.history(sess.ID))
}

// S-004.2: an outcome that was applied before and never acknowledged leaves the
// turn that is open now running.
func TestRetrackWithAnOldOutcome(t *testing.T) {
	b := setup(t)
	sess := b.running("x", "one", "t-1")
	old := ended("t-1", "one")
	_, _, err := b.ApplyOutcome(b.ctx, b.inst, sess.ID, old, boot)
	require.NoError(t, err)
	b.prompt(sess.ID, "two", "t-2")
	out := b.retrack(sess, func(r *store.Retrack) { r.State, r.Outcome = recovery.StateRunning, &old })
	require.False(t, out.OutcomeApplied)
	b.state(sess.ID, recovery.StateRunning, recovery.TaskInProgress)
	require.Equal(t, recovery.TurnOpen, b.lastTurn(sess.ID).State)
}

// S-004.2: none kept and no open turn: the stored state. S-002.2: the record
// names the instance that lives, whatever its id.
func TestRetrackWaitingUnderAnotherId(t *testing.T) {
	b := setup(t)
	sess := b.waiting("x")
	b.retrack(sess, func(r *store.Retrack) { r.ExecutionID, r.Generation, r.ProviderSessionID = "other", 7, "provider-new" })
	b.state(sess.ID, recovery.StateWaitingForInput, recovery.TaskBacklog)
	rec := b.record(sess.ID)
	require.Equal(t, "other", rec.ExecutionID)
	require.EqualValues(t, 7, rec.Generation)
	require.Equal(t, "provider-new", rec.ResumeToken)
	require.Equal(t, "provider-new", b.session(sess.ID).ProviderSessionID)
}

// An instance whose turn the store had not heard of yet: the session runs, and
// so does its task.
func TestRetrackToRunning(t *testing.T) {
	b := setup(t)
	sess := b.waiting("x")
	b.retrack(sess, func(r *store.Retrack) { r.State = recovery.StateRunning })
	b.state(sess.ID, recovery.StateRunning, recovery.TaskInProgress)
}

// A session that something else settled meanwhile is not published.
func TestRetrackOfASettledSession(t *testing.T) {
	b := setup(t)
	sess := b.waiting("x")
	b.repair(sess.ID, "x")
	_, err := b.Publish(b.ctx, store.Retrack{Installation: b.inst, SessionID: sess.ID, ExecutionID: "x", BootID: "boot-2"})
	require.ErrorIs(t, err, store.ErrConflict)
	require.Empty(t, b.record(sess.ID).ExecutionID)
}
