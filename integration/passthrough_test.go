package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/backend/tied"
	"github.com/kandev/recovery/internal/demo"
	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// passthrough starts a passthrough session and does not wait for its agent.
func (w *world) passthrough(name string, args ...string) *agent {
	w.t.Helper()
	a := &agent{w: w, tree: w.tree(name)}
	var err error
	a.print, err = demo.Fingerprint(a.tree)
	require.NoError(w.t, err)
	a.state, a.log = w.profile(name, args...)
	created, err := w.backend.client.CreateSession(w.t.Context(), userapi.CreateSession{ProfileID: name, Workspace: a.tree, Passthrough: true})
	require.NoError(w.t, err)
	a.session = created.ID
	return a
}

// isTied waits until the session has lost its agent by the cause, and checks
// that the agent was gone before that was said and that nothing else is lost.
func (u *unattended) isTied(a *agent, causes ...string) {
	u.t.Helper()
	view := a.await("is interrupted", func(s userapi.Session) bool { return s.State == recovery.StateInterrupted })
	require.False(u.t, a.runs(), "it is gone before its session says so")
	require.Contains(u.t, causes, view.Cause)
	u.isResumable(a)
}

// S-005.3, S-001.7: with the capability on, the agent of a passthrough session
// dies with its backend, whichever way that ends, beside one that survives. The
// next one neither re-tracks it nor takes it for an orphan, and its session is
// resumable once the agent, which is deaf to all but SIGKILL, is proven gone. A
// stop that its user had asked for is carried out.
func TestPassthroughAgentsDieWithTheirBackend(t *testing.T) {
	t.Parallel()
	endings := map[string]func(*backend){"killed": (*backend).kill, "shut down": (*backend).terminate}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start().serving()
			stays, goes, stopping := w.agent("stays"), w.passthrough("goes", unhearing...), w.passthrough("stopping")
			goes.ready()
			stopping.ready()
			stays.prompt("one", "stream until file go every 5ms")
			goes.prompt("one", "wait file go") // one that writes ends by its broken pipe
			w.bend(`UPDATE executors_running SET stop_requested_at = now(), stop_request_id = 'r' WHERE session_id = $1`, stopping.session)
			end(w.backend)
			u := &unattended{world: w, db: w.store()}
			u.dial()
			require.Len(t, u.instances(), 1, "the detached control server has the other one only")

			status := w.start().serving().status
			require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 1}, status.Recovery.Counts)
			require.Zero(t, status.Recovery.Stopped)
			u.isTied(goes, tied.CauseBackendEnded, "agent_ended")
			require.Equal(t, recovery.TaskInterrupted, goes.view().TaskState)
			require.Equal(t, recovery.TurnAbandoned, goes.view().Turn.State)
			refused(t, goes, userapi.CodeNoAgent)
			stopping.await("is cancelled", func(s userapi.Session) bool { return s.State == recovery.StateCancelled })
			require.False(t, stopping.runs())

			next := w.passthrough("next")
			next.ready()
			next.prompt("one", "stream 3")
			next.ended("one")
			next.unharmed()
			stays.touch("go")
			stays.ended("one")
			stays.unharmed()
		})
	}
}

// S-005.3, W-8: before any guard is taken, and with the capability on or off, a
// passthrough session is launched and does all that a session does, while every
// other launch is refused retryably.
func TestPassthroughDuringRecovery(t *testing.T) {
	t.Parallel()
	for name, setting := range map[string][]string{"on": nil, "off": {off}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := holdAt(t, "adoption.begun")
			b := w.start(append(h.settings, setting...)...)
			h.reached()
			w.eventually("requests are served", func() bool {
				_, err := b.client.Sessions(t.Context())
				return err == nil
			})
			a := w.passthrough("tied")
			a.ready()
			_, err := b.client.CreateSession(t.Context(), userapi.CreateSession{ProfileID: "tied", Workspace: a.tree})
			var refusal *userapi.Error
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, userapi.CodeRecovering, refusal.Code)

			a.prompt("one", "stream 3; ask; stream 3")
			a.answer(fakeagent.OptionAllow)
			require.Equal(t, "end_turn", a.ended("one").Turn.StopReason)
			a.prompt("two", "stream until file go every 5ms")
			require.NoError(t, b.client.Cancel(t.Context(), a.session))
			require.Equal(t, recovery.TurnCancelled, a.ended("two").Turn.State)
			read, err := b.client.ReadFile(t.Context(), a.session, userapi.Place{Path: "work.txt"}, 0, 0)
			require.NoError(t, err)
			require.Equal(t, "half done\n", string(read.Content))
			_, err = b.client.GitStatus(t.Context(), a.session, 0)
			require.NoError(t, err)
			a.unharmed()
			require.True(t, b.answers())
			require.Equal(t, userapi.PhaseRecovering, b.status.Phase)
			h.release()

			require.Zero(t, b.serving().status.Recovery.Counts[recovery.OutcomeRetracked])
			a.prompt("three", "stream 3")
			a.ended("three")
			a.unharmed()
			require.NoError(t, b.client.Stop(t.Context(), a.session))
			a.await("is cancelled", func(s userapi.Session) bool { return s.State == recovery.StateCancelled })
			require.False(t, a.runs())
		})
	}
}

// S-005.3, W-3: a start of a passthrough session in whose middle the backend
// died. One that has no agent yet goes on; of any other the agent is gone, and the
// session says so.
func TestAPassthroughLaunchThatIsCutShort(t *testing.T) {
	t.Parallel()
	steps := map[string]recovery.SessionState{"created": recovery.StateFailed}
	if long() {
		steps["begun"] = recovery.StateWaitingForInput
		steps["published"] = recovery.StateInterrupted
	}
	for step, want := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.start("KANDEV_CRASH_AT=launch." + step).serving()
			a := w.passthrough("cut")
			b.died()
			w.start().serving()
			a.await("is settled", func(s userapi.Session) bool { return s.State == want })
			if want == recovery.StateWaitingForInput {
				a.ready()
				a.unharmed()
				return
			}
			require.Nil(t, a.view().Agent)
			a.untouched()
		})
	}
}
