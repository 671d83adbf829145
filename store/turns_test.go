//go:build unix

package store_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// B-17, S-004.2: a prompt is written down once by its key, with what is needed
// to send it again.
func TestRecordTurn(t *testing.T) {
	b := setup(t)
	sess := b.waiting("i")
	turn, created, err := b.RecordTurn(b.ctx, b.inst, sess.ID, "key", blocks, boot)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, recovery.TurnRecorded, turn.State)
	b.state(sess.ID, recovery.StateRunning, recovery.TaskInProgress)
	open, err := b.OpenTurn(b.ctx, b.inst, sess.ID)
	require.NoError(t, err)
	require.Equal(t, &turn, open)
	require.JSONEq(t, string(blocks), string(open.Blocks))

	again, created, err := b.RecordTurn(b.ctx, b.inst, sess.ID, "key", []byte(`[]`), boot)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, turn, again)
	_, _, err = b.RecordTurn(b.ctx, b.inst, sess.ID, "other", blocks, boot)
	require.ErrorIs(t, err, store.ErrTurnOpen)
	require.Equal(t, []string{"CREATED>STARTING start", "STARTING>WAITING_FOR_INPUT started", "WAITING_FOR_INPUT>RUNNING prompt"}, b.history(sess.ID))
}

func TestRecordTurnNeedsAnAgentThatWaits(t *testing.T) {
	b := setup(t)
	sess := b.created()
	_, _, err := b.RecordTurn(b.ctx, b.inst, sess.ID, "key", blocks, boot)
	var conflict *store.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.ErrorIs(t, err, store.ErrConflict)
	require.Equal(t, recovery.StateCreated, conflict.Current)
	turn, err := b.LastTurn(b.ctx, b.inst, sess.ID)
	require.NoError(t, err)
	require.Nil(t, turn)
}

// B-17: of concurrent prompts with one key one is created and all get it; of
// those with different keys one is, and the others are told that a turn is open.
func TestConcurrentPrompts(t *testing.T) {
	b := setup(t)
	same, different := b.waiting("i"), b.waiting("j")
	var createdSame, createdDifferent, open atomic.Int32
	b.atOnce(4, func(int) {
		_, created, err := b.RecordTurn(b.ctx, b.inst, same.ID, "key", blocks, boot)
		noError(t, err)
		if created {
			createdSame.Add(1)
		}
	}, lockSession, same.ID)
	b.atOnce(4, func(i int) {
		_, created, err := b.RecordTurn(b.ctx, b.inst, different.ID, fmt.Sprint(i), blocks, boot)
		switch {
		case created:
			createdDifferent.Add(1)
		case errors.Is(err, store.ErrTurnOpen):
			open.Add(1)
		}
	}, lockSession, different.ID)
	require.EqualValues(t, 1, createdSame.Load())
	require.EqualValues(t, 1, createdDifferent.Load())
	require.EqualValues(t, 3, open.Load())
}

func TestMarkTurnSent(t *testing.T) {
	b := setup(t)
	sess := b.running("i", "key", "t-1")
	require.NoError(t, b.MarkTurnSent(b.ctx, b.inst, sess.ID, "key", "t-1"))
	require.ErrorIs(t, b.MarkTurnSent(b.ctx, b.inst, sess.ID, "key", "t-2"), store.ErrNoTurn, "a turn keeps its id")
	require.ErrorIs(t, b.MarkTurnSent(b.ctx, b.inst, sess.ID, "unknown", "t-1"), store.ErrNoTurn)
	require.Equal(t, "t-1", b.lastTurn(sess.ID).TurnID)
	_, _, err := b.ApplyOutcome(b.ctx, b.inst, sess.ID, ended("t-1", "key"), boot)
	require.NoError(t, err)
	require.NoError(t, b.MarkTurnSent(b.ctx, b.inst, sess.ID, "key", "t-1"))
	require.Equal(t, recovery.TurnEnded, b.lastTurn(sess.ID).State, "a late mark does not open it again")
}

// S-004.1, S-004.4, S-004.6: an outcome applies once, however often and by
// whichever way it comes, and is mapped to the turn's state.
func TestApplyOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		outcome store.Outcome
		want    recovery.TurnState
	}{
		"ended":     {store.Outcome{StopReason: "end_turn"}, recovery.TurnEnded},
		"cancelled": {store.Outcome{StopReason: "cancelled"}, recovery.TurnCancelled},
		"failed":    {store.Outcome{Error: "agent\x00exited \xff"}, recovery.TurnFailed},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			sess := b.running("i", "key", "t-1")
			c.outcome.TurnID, c.outcome.Key, c.outcome.EndedAt = "t-1", "key", time.Now()
			applied, after, err := b.ApplyOutcome(b.ctx, b.inst, sess.ID, c.outcome, boot)
			require.NoError(t, err)
			require.True(t, applied)
			require.Equal(t, recovery.StateWaitingForInput, after.State)
			require.Equal(t, b.session(sess.ID), after)
			b.state(sess.ID, recovery.StateWaitingForInput, recovery.TaskReview)
			turn := b.lastTurn(sess.ID)
			require.Equal(t, c.want, turn.State)
			require.True(t, c.outcome.EndedAt.Truncate(time.Microsecond).Equal(*turn.EndedAt))
			history := b.history(sess.ID)

			applied, _, err = b.ApplyOutcome(b.ctx, b.inst, sess.ID, c.outcome, "another boot")
			require.NoError(t, err)
			require.False(t, applied)
			require.Equal(t, turn, b.lastTurn(sess.ID))
			require.Equal(t, history, b.history(sess.ID))
		})
	}
}

// S-004.6: a late outcome of an ended turn, of an unknown one, or with another
// turn's key never touches the turn that is open now.
func TestOutcomeOfAnotherTurnChangesNothing(t *testing.T) {
	b := setup(t)
	sess := b.running("i", "one", "t-1")
	_, _, err := b.ApplyOutcome(b.ctx, b.inst, sess.ID, ended("t-1", "one"), boot)
	require.NoError(t, err)
	b.prompt(sess.ID, "two", "t-2")
	for _, o := range []store.Outcome{ended("t-1", "one"), ended("t-9", "nine"), ended("t-9", "two"), ended("t-1", ""), ended("", "one"), {}} {
		applied, _, err := b.ApplyOutcome(b.ctx, b.inst, sess.ID, o, boot)
		require.NoError(t, err)
		require.False(t, applied, "%+v", o)
	}
	b.state(sess.ID, recovery.StateRunning, recovery.TaskInProgress)
	require.Equal(t, recovery.TurnOpen, b.lastTurn(sess.ID).State)
}

// S-004.2: the backend died between sending a prompt and noting its turn id:
// the outcome finds the turn by its key.
func TestOutcomeOfARecordedTurn(t *testing.T) {
	b := setup(t)
	sess := b.waiting("i")
	_, _, err := b.RecordTurn(b.ctx, b.inst, sess.ID, "key", blocks, boot)
	require.NoError(t, err)
	applied, _, err := b.ApplyOutcome(b.ctx, b.inst, sess.ID, ended("t-1", "key"), boot)
	require.NoError(t, err)
	require.True(t, applied)
	require.Equal(t, "t-1", b.lastTurn(sess.ID).TurnID)
	b.state(sess.ID, recovery.StateWaitingForInput, recovery.TaskReview)
}

// S-004.4: the kept outcome and the delivered event race; one applies.
func TestConcurrentOutcomes(t *testing.T) {
	b := setup(t)
	sess := b.running("i", "key", "t-1")
	var count atomic.Int32
	b.atOnce(4, func(int) {
		applied, _, err := b.ApplyOutcome(b.ctx, b.inst, sess.ID, ended("t-1", "key"), boot)
		noError(t, err)
		if applied {
			count.Add(1)
		}
	}, lockSession, sess.ID)
	require.EqualValues(t, 1, count.Load())
	require.Len(t, b.history(sess.ID), 4)
}

// A task with two sessions is in review only when neither runs, also when both
// end at once.
func TestTaskFollowsAllOfItsSessions(t *testing.T) {
	b := setup(t)
	first := b.running("i", "key", "t-1")
	second, err := b.CreateSession(b.ctx, store.NewSession{Installation: b.inst, TaskID: first.TaskID, ProfileID: "fake", Workspace: "/w"})
	require.NoError(t, err)
	_, err = b.BeginStart(b.ctx, store.Start{Installation: b.inst, SessionID: second.ID, ExecutionID: "j", BootID: boot})
	require.NoError(t, err)
	_, err = b.PublishStarted(b.ctx, store.Started{Installation: b.inst, SessionID: second.ID, ExecutionID: "j", BootID: boot})
	require.NoError(t, err)
	b.state(second.ID, recovery.StateWaitingForInput, recovery.TaskInProgress)
	b.prompt(second.ID, "key", "t-2")
	_, _, err = b.ApplyOutcome(b.ctx, b.inst, first.ID, ended("t-1", ""), boot)
	require.NoError(t, err)
	b.state(first.ID, recovery.StateWaitingForInput, recovery.TaskInProgress)

	b.prompt(first.ID, "again", "t-3")
	b.atOnce(2, func(i int) {
		session, turn := []string{first.ID, second.ID}[i], []string{"t-3", "t-2"}[i]
		_, _, err := b.ApplyOutcome(b.ctx, b.inst, session, ended(turn, ""), boot)
		noError(t, err)
	}, lockTask, first.TaskID)
	b.state(first.ID, recovery.StateWaitingForInput, recovery.TaskReview)
}

// noError is for goroutines, where a test must not be ended.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
