package integration

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// emptied takes a value away that re-tracking needs.
const emptied = `UPDATE agent_profiles SET agent = '' WHERE id = $1`

// S-002.10, S-002.11, S-002.15, S-002.16, B-6, W-7: an agent that cannot be
// stopped locks its session, for the life of the boot and by a refusal of its
// own; one that is the loser of its session has the winner stopped too. Sessions
// beside it are re-tracked. The next boot tries again, and once the processes
// are gone the sessions are resumable. Only another user's process cannot be
// ended: without the right to make one, the control server is starved instead,
// as in TestAStarvedServerIsNotGone.
func TestAnUnstoppableAgentLocksItsSession(t *testing.T) {
	t.Parallel()
	if !canChangeUser() {
		w := newWorld(t)
		s := besiege(w)
		starvedAfter(s, "enumerated")
		neitherReadNorStopped(s)
		return
	}
	w := newWorld(t)
	foreign := newForeignUser(w)
	w.start().serving()
	free, lost, beside := foreign.ordinary("free"), foreign.untouchable("lost"), foreign.ordinary("beside")
	u := leave(w)
	rival := foreign.stray(u, beside.session, "rival")
	u.bend(emptied, "lost")

	b := w.start().serving()
	pass := b.status.Recovery
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 1, recovery.OutcomeUnstopped: 2}, pass.Counts)
	require.Equal(t, 2, pass.Unstopped)
	require.Equal(t, 1, pass.Stopped, "the winner of the other")
	require.True(t, lost.runs() && rival.runs())
	require.False(t, beside.runs())
	unstopped := map[string]userapi.SessionOutcome{}
	for _, o := range pass.Others {
		unstopped[o.SessionID] = o
	}
	require.Equal(t, "rival", unstopped[beside.session].InstanceID)
	require.NotEmpty(t, unstopped[beside.session].Detail)
	require.NotEmpty(t, unstopped[lost.session].InstanceID)
	for _, a := range []*agent{lost, beside} {
		refused(t, a, userapi.CodeUnstopped)
	}
	free.prompt("one", "stream 3")
	free.ended("one")
	b.kill()

	require.Equal(t, pass.Counts, w.start().serving().status.Recovery.Counts, "tried again, and failed again")
	refused(t, lost, userapi.CodeUnstopped)
	for _, a := range []*agent{lost, rival} {
		require.NoError(t, syscall.Kill(a.pid, syscall.SIGKILL))
	}
	refused(t, lost, userapi.CodeUnstopped)
	w.backend.kill()
	pass = w.start().serving().status.Recovery
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 1, recovery.OutcomeStale: 2}, pass.Counts)
	for _, a := range []*agent{lost, beside} {
		u.isResumable(a)
		refused(t, a, userapi.CodeNoAgent)
	}
	free.unharmed()
}

// S-002.15, B-22, W-7: a user's stop of such an agent fails and says so; the
// session stays what it is, and the stop can be repeated, also under the next
// boot, until it succeeds.
func TestAUsersStopOfAnUnstoppableAgentSaysSo(t *testing.T) {
	t.Parallel()
	if !canChangeUser() {
		w := newWorld(t)
		s := besiege(w)
		s.start(impatience()...).serving()
		feed := s.starve(s.record.PID)
		failsToStop(s.agent, 1)
		feed()
		s.agent.touch("go")
		return
	}
	w := newWorld(t)
	foreign := newForeignUser(w)
	w.start().serving()
	a := foreign.untouchable("lasting")
	failsToStop(a, 1)
	failsToStop(a, 2)
	require.True(t, a.runs())
	require.NoError(t, w.backend.client.Stop(t.Context(), a.session))
	u := leave(w)
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeOwnedByStop: 1}, w.start().serving().status.Recovery.Counts)
	w.eventually("the stop fails again", func() bool { return stopFailures(a) == 3 })
	refused(t, a, userapi.CodeUnstopped)

	require.NoError(t, syscall.Kill(a.pid, syscall.SIGKILL))
	require.NoError(t, w.backend.client.Stop(t.Context(), a.session))
	a.await("is cancelled", func(s userapi.Session) bool { return s.State == recovery.StateCancelled })
	kept, err := u.db.GetRecord(t.Context(), u.installation(), a.session)
	require.NoError(t, err)
	require.NotEmpty(t, kept.ResumeToken)
}

// failsToStop stops the agent's session in vain, for the nth time.
func failsToStop(a *agent, times int) {
	a.w.t.Helper()
	before := a.view().State
	require.NoError(a.w.t, a.w.backend.client.Stop(a.w.t.Context(), a.session))
	a.w.eventually("the stop fails", func() bool { return stopFailures(a) == times })
	require.Equal(a.w.t, before, a.view().State)
}

func stopFailures(a *agent) int {
	a.w.t.Helper()
	failed := 0
	for _, transition := range a.transitions("") {
		if _, cause, _ := strings.Cut(transition, " "); cause == "stop failed" {
			failed++
		}
	}
	return failed
}
