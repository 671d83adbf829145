package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/recovery"
)

// S-002.2, S-002.10, S-002.11, S-001.7: of several live instances of a session
// the recorded one is re-tracked and the others are stopped; where none is the
// recorded one all are, and the session stays resumable. A single one is
// re-tracked whatever its id. The sessions do not influence each other.
func TestOneAgentOfASessionIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start().serving()
	matched, renamed, strange, ended := w.agent("matched"), w.agent("renamed"), w.agent("strange"), w.agent("ended")
	matched.prompt("one", "stream until file go every 5ms")
	kept := []string{matched.view().Agent.InstanceID, renamed.view().Agent.InstanceID, ended.view().Agent.InstanceID}
	u := leave(w)
	losers := []*agent{
		u.stray(matched.session, "second"), u.stray(matched.session, "third"), u.stray(strange.session, "fourth"),
	}
	exited := u.stray(ended.session, "exited")
	u.tell("exited", "exit 3")
	u.eventually("its agent has ended", func() bool { return !u.instances()["exited"].Alive() })
	for _, a := range []*agent{renamed, strange} {
		u.bend(`UPDATE executors_running SET agent_execution_id = agent_execution_id || 'x' WHERE session_id = $1`, a.session)
	}

	pass := w.start().serving().status.Recovery
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 3, recovery.OutcomeAmbiguous: 1}, pass.Counts)
	require.Equal(t, len(losers)+2, pass.Stopped, "and the one that had ended, and the one that was not recorded")
	require.Zero(t, pass.Unstopped)
	for _, a := range append(losers, exited, strange) {
		require.False(t, a.runs())
	}
	u.isResumable(strange)
	u.dial()
	live := u.instances()
	require.Len(t, live, len(kept))
	for _, id := range kept {
		require.Equal(t, wire.InstanceReady, live[id].State)
	}
	matched.touch("go")
	matched.ended("one")
	for _, a := range []*agent{matched, renamed, ended} {
		a.prompt("two", "stream 3")
		a.ended("two")
		a.unharmed()
	}
}
