//go:build unix

package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

func TestCreateAndReadSession(t *testing.T) {
	b := setup(t)
	sess := b.created()
	require.Equal(t, recovery.StateCreated, sess.State)
	require.Equal(t, recovery.TaskBacklog, sess.TaskState)
	require.Equal(t, "a task", sess.TaskTitle)
	require.Equal(t, []string{"/w", "/src"}, sess.Roots)
	require.NotEmpty(t, sess.TaskEnvironmentID)
	require.Equal(t, sess, b.session(sess.ID), "times are equal after a round trip")

	second, err := b.CreateSession(b.ctx, store.NewSession{
		Installation: b.inst, TaskID: sess.TaskID, ProfileID: "fake", Workspace: "/other",
	})
	require.NoError(t, err)
	require.Equal(t, "a task", second.TaskTitle)
	require.Equal(t, []string{}, second.Roots)
	list, err := b.ListSessions(b.ctx, b.inst)
	require.NoError(t, err)
	require.Equal(t, []store.Session{sess, second}, list)
}

func TestCreateSessionRefusals(t *testing.T) {
	b := setup(t)
	_, err := b.CreateSession(b.ctx, store.NewSession{Installation: b.inst, ProfileID: "unknown"})
	require.ErrorIs(t, err, store.ErrNoProfile)
	_, err = b.CreateSession(b.ctx, store.NewSession{Installation: "unknown", ProfileID: "fake"})
	require.ErrorIs(t, err, store.ErrNoInstallation)
	_, err = b.CreateSession(b.ctx, store.NewSession{Installation: b.inst, ProfileID: "fake", Title: "a\x00b"})
	require.ErrorIs(t, err, store.ErrInvalidText)
	_, err = b.GetSession(b.ctx, b.inst, "unknown")
	require.ErrorIs(t, err, store.ErrNoSession)
	list, err := b.ListSessions(b.ctx, b.inst)
	require.NoError(t, err)
	require.Empty(t, list, "a refused session leaves no task behind")
}

func TestProfileRoundTrip(t *testing.T) {
	b := setup(t)
	want := store.Profile{
		ID: "p", Agent: "a", Command: []string{"x", `quo"te`, "a,b{}"}, HistoryMode: "full",
		Env: map[string]string{"A": "1", "NUL": "a\x00b"},
	}
	require.NoError(t, b.PutProfile(b.ctx, b.inst, store.Profile{ID: "p"}))
	require.NoError(t, b.PutProfile(b.ctx, b.inst, want))
	got, err := b.GetProfile(b.ctx, b.inst, "p")
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = b.GetProfile(b.ctx, b.inst, "unknown")
	require.ErrorIs(t, err, store.ErrNoProfile)
	require.ErrorIs(t, b.PutProfile(b.ctx, "unknown", want), store.ErrNoInstallation)
}

// B-7: two installations in one database see nothing of each other, also where
// they use the same ids.
func TestInstallationsDoNotSeeEachOther(t *testing.T) {
	ours := setup(t)
	theirs := ours.installation("other")
	sess := ours.running("exec", "key", "t-1")
	require.NoError(t, ours.PutControlServer(ours.ctx, ours.inst, store.ControlServer{ServerIdentity: "server", SecretRef: "ref"}, "token"))
	_, err := ours.CommitEvents(ours.ctx, batch(sess, "exec", 1, 2, 3))
	require.NoError(t, err)

	ctx, inst := theirs.ctx, theirs.inst
	_, err = theirs.GetSession(ctx, inst, sess.ID)
	require.ErrorIs(t, err, store.ErrNoSession)
	list, err := theirs.ListSessions(ctx, inst)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = theirs.Transition(ctx, store.Change{Installation: inst, SessionID: sess.ID, From: []recovery.SessionState{recovery.StateRunning}, To: recovery.StateFailed})
	require.ErrorIs(t, err, store.ErrNoSession)
	transitions, err := theirs.Transitions(ctx, inst, sess.ID)
	require.NoError(t, err)
	require.Empty(t, transitions)
	turn, err := theirs.OpenTurn(ctx, inst, sess.ID)
	require.NoError(t, err)
	require.Nil(t, turn)
	_, _, err = theirs.ApplyOutcome(ctx, inst, sess.ID, ended("t-1", "key"), boot)
	require.ErrorIs(t, err, store.ErrNoSession)
	_, err = theirs.GetRecord(ctx, inst, sess.ID)
	require.ErrorIs(t, err, store.ErrNoRecord)
	records, err := theirs.LiveStandalone(ctx, inst)
	require.NoError(t, err)
	require.Empty(t, records)
	_, err = theirs.Repair(ctx, store.Repair{Installation: inst, SessionID: sess.ID, ExecutionID: "exec"})
	require.ErrorIs(t, err, store.ErrNoSession)
	_, err = theirs.GetControlServer(ctx, inst)
	require.ErrorIs(t, err, store.ErrNoRecord)
	_, err = theirs.Credential(ctx, inst, "ref")
	require.ErrorIs(t, err, store.ErrSecretMissing)
	cursor, err := theirs.Cursor(ctx, inst, "exec")
	require.NoError(t, err)
	require.Zero(t, cursor)
	events, err := theirs.EventsAfter(ctx, inst, sess.ID, 0, 10)
	require.NoError(t, err)
	require.Empty(t, events)
	foreign := batch(sess, "exec", 4)
	foreign.Installation = inst
	_, err = theirs.CommitEvents(ctx, foreign)
	require.ErrorIs(t, err, store.ErrNoSession)

	require.NoError(t, theirs.PutControlServer(ctx, inst, store.ControlServer{ServerIdentity: "theirs", SecretRef: "ref"}, "other"))
	token, err := ours.Credential(ours.ctx, ours.inst, "ref")
	require.NoError(t, err)
	require.Equal(t, "token", token)
	require.NoError(t, ours.PutRecoveryOutcomes(ours.ctx, ours.inst, boot, 1, []store.RecoveryOutcome{{SessionID: sess.ID, Outcome: recovery.OutcomeRetracked}}))
	outcomes, err := theirs.RecoveryOutcomes(ctx, inst, boot)
	require.NoError(t, err)
	require.Empty(t, outcomes)
	ours.state(sess.ID, recovery.StateRunning, recovery.TaskInProgress)
}

// S-003.1: a pass's outcomes are there for reconciliation; the newest of a
// session in a pass counts.
func TestRecoveryOutcomes(t *testing.T) {
	b := setup(t)
	put := func(pass int64, rows ...store.RecoveryOutcome) {
		require.NoError(t, b.PutRecoveryOutcomes(b.ctx, b.inst, boot, pass, rows))
	}
	put(1)
	put(1, store.RecoveryOutcome{SessionID: "a", Outcome: recovery.OutcomeUnknown},
		store.RecoveryOutcome{SessionID: "a", Outcome: recovery.OutcomeStale, Detail: "x\x00"})
	put(1, store.RecoveryOutcome{SessionID: "b", Outcome: recovery.OutcomeUnstopped, Instance: "i", State: recovery.StateRunning})
	put(2, store.RecoveryOutcome{SessionID: "a", Outcome: recovery.OutcomeRetracked})
	put(1, store.RecoveryOutcome{SessionID: "b", Outcome: recovery.OutcomeDeadline})
	got, err := b.RecoveryOutcomes(b.ctx, b.inst, boot)
	require.NoError(t, err)
	for i := range got {
		require.WithinDuration(t, time.Now(), got[i].At, time.Minute)
		got[i].At = time.Time{}
	}
	require.Equal(t, []store.RecoveryOutcome{
		{Pass: 1, SessionID: "a", Outcome: recovery.OutcomeStale, Detail: "x\uFFFD"},
		{Pass: 1, SessionID: "b", Outcome: recovery.OutcomeDeadline},
		{Pass: 2, SessionID: "a", Outcome: recovery.OutcomeRetracked},
	}, got)
	none, err := b.RecoveryOutcomes(b.ctx, b.inst, "other boot")
	require.NoError(t, err)
	require.Empty(t, none)
}
