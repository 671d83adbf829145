package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
)

// S-002.3, S-002.4, S-002.11, S-002.14: a value that its source says is absent
// has the one instance stopped that needs it; the outcome names the value, and
// the session stays resumable. A value that may be empty is no reason.
func TestAMissingValueStopsItsAgent(t *testing.T) {
	t.Parallel()
	cases := []struct {
		value recovery.Value
		bend  string
	}{
		{recovery.ValueAgent, `UPDATE agent_profiles SET agent = '' WHERE id = $1`},
		{recovery.ValueCommand, `UPDATE agent_profiles SET command = '{}' WHERE id = $1`},
	}
	w := newWorld(t)
	w.start().serving()
	whole := w.agent("whole")
	whole.prompt("one", "stream until file go every 5ms")
	agents := map[string]*agent{}
	for _, c := range cases {
		agents[string(c.value)] = w.agent(string(c.value))
	}
	u := leave(w)
	for _, c := range cases {
		u.bend(c.bend, string(c.value))
	}
	u.bend(`UPDATE agent_profiles SET history_mode = '' WHERE id = $1`, "whole")

	pass := w.start().serving().status.Recovery
	require.Equal(t, map[recovery.SessionOutcome]int{
		recovery.OutcomeRetracked: 1, recovery.OutcomeMissingValue: len(cases),
	}, pass.Counts)
	require.Len(t, pass.Others, len(cases))
	for _, o := range pass.Others {
		a := agents[o.Detail]
		require.NotNil(t, a, "%q is none of the values that were taken away", o.Detail)
		require.Equal(t, a.session, o.SessionID)
		require.False(t, a.runs())
		u.isResumable(a)
	}
	whole.touch("go")
	whole.ended("one")
	whole.unharmed()
}
