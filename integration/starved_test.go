package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// starvation is a moment of a pass at which the control server stops answering
// for longer than the budget of a read.
type starvation struct {
	after  string // the last step that it answered
	ends   func(*siege)
	inFull bool
}

var starvations = []starvation{
	{after: "guarded", ends: standsAlone(recovery.RefusedNoAnswer), inFull: true},
	{after: "located", ends: standsAlone(recovery.RefusedNoAnswer)},
	{after: "evaluated", ends: standsAlone(recovery.RefusedCredentialRotationFailure)},
	{after: "rotated", ends: notEnumerable, inFull: true},
	{after: "stored", ends: notEnumerable},
	{after: "confirmed", ends: notEnumerable, inFull: true},
	{after: "enumerated", ends: neitherReadNorStopped},
}

// S-002.11, S-002.12, S-002.13, S-002.15, S-002.16, S-003.6, S-003.7, O-001.6,
// O-001.8, O-002.5: a control server that is starved in the middle of a pass is
// taken neither for gone nor for somebody else's. What was not read is not
// recovered, nothing is repaired on a guess, launches are refused, and the next
// boot adopts the same agent.
func TestAStarvedServerIsNotGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := besiege(w)
	for _, c := range starvations {
		if c.inFull && !long() {
			continue
		}
		t.Run("after "+c.after, func(t *testing.T) {
			w.within(t)
			s.record, s.token = s.recorded()
			starvedAfter(s, c.after)
			require.True(t, s.agent.runs())
			require.Equal(t, recovery.StateRunning, s.agent.view().State)
			c.ends(s)
			s.backend.kill()
		})
	}
	require.True(t, s.start().serving().status.Control.Adopted)
	s.agent.touch("go")
	require.Equal(t, "end_turn", s.agent.ended("one").Turn.StopReason)
	s.agent.unharmed()
}

// starvedAfter has a backend recover while the control server is starved from the
// step on.
func starvedAfter(s *siege, step string) {
	s.t.Helper()
	h := holdAt(s.t, "adoption."+step)
	s.start(append(impatience(), h.settings...)...)
	h.reached()
	feed := s.starve(s.record.PID)
	h.release()
	s.backend.serving()
	feed()
}

// standsAlone checks that the server was refused for the reason and left alone,
// and makes it the recorded one again.
func standsAlone(reason recovery.RefusalReason) func(*siege) {
	return func(s *siege) {
		s.t.Helper()
		pass := s.backend.status.Recovery
		require.Equal(s.t, recovery.VerdictRefused, pass.Verdict)
		require.Equal(s.t, reason, pass.Reason)
		require.Zero(s.t, pass.Stopped+pass.Unstopped)
		s.standsAlone(s.sealed())
		s.mend()
	}
}

// notEnumerable checks that the server was adopted, and that nothing was
// recovered, stopped or started beside it (S-002.12).
func notEnumerable(s *siege) {
	s.t.Helper()
	pass := s.backend.status.Recovery
	require.Equal(s.t, recovery.VerdictAdoptable, pass.Verdict)
	require.Equal(s.t, map[recovery.SessionOutcome]int{recovery.OutcomeUnknown: 1}, pass.Counts)
	require.Zero(s.t, pass.Stopped+pass.Unstopped)
	require.Equal(s.t, s.record.ServerIdentity, s.backend.status.Control.ServerIdentity)
}

// neitherReadNorStopped checks that the session, whose agent may live on, stays
// locked for the life of the boot, and says so (S-002.16).
func neitherReadNorStopped(s *siege) {
	s.t.Helper()
	pass := s.backend.status.Recovery
	require.Equal(s.t, map[recovery.SessionOutcome]int{recovery.OutcomeUnstopped: 1}, pass.Counts)
	require.Equal(s.t, 1, pass.Unstopped)
	require.Equal(s.t, s.agent.session, pass.Others[0].SessionID)
	require.NotEmpty(s.t, pass.Others[0].InstanceID)
	require.NotEmpty(s.t, pass.Others[0].Detail)
	refused(s.t, s.agent, userapi.CodeUnstopped)
}

// S-004.6, S-003.7: starved in the middle of a publication, which has to
// acknowledge what the server kept, the session is published once the server
// answers again, and the outcome is applied once.
func TestAPublicationWaitsForAStarvedServer(t *testing.T) {
	w := newWorld(t)
	w.start().serving()
	a := w.agent("ends")
	a.prompt("one", "stream 3; wait file go; stream 3")
	w.eventually("it works", func() bool { return a.produced().Updates == 3 })
	u := leave(w)
	a.touch("go")
	w.eventually("the turn ends", func() bool { return a.produced().Ends == 1 })

	h := holdAt(t, "adoption.observed")
	b := w.start(append(impatience(), h.settings...)...)
	h.reached()
	feed := w.starve(u.record.PID)
	h.release()
	w.eventually("the outcome is applied", func() bool {
		session, err := b.client.Session(t.Context(), a.session)
		return err == nil && session.State == recovery.StateWaitingForInput
	})
	refused(t, a, userapi.CodeRecovering)
	feed()
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 1}, b.serving().status.Recovery.Counts)
	require.Equal(t, []string{"RUNNING>WAITING_FOR_INPUT retracked"}, a.transitions(b.status.BootID))
	a.prompt("two", "stream 3")
	a.ended("two")
	a.unharmed()
}
