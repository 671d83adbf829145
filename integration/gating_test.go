package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

const off = "KANDEV_FEATURES_AGENT_SURVIVAL=false"

// S-005.1: with the capability off the control server and its agents die with
// the backend, whichever way it ends; the next one adopts nothing and leaves
// the session resumable.
func TestOffAgentsDieWithTheirBackend(t *testing.T) {
	endings := map[string]func(*backend){"killed": (*backend).kill, "shut down": (*backend).terminate}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			require.Equal(t, userapi.Survival{State: "off"}, w.start(off).serving().status.Survival)
			a := w.agent("bound")
			a.prompt("one", "stream until file go every 5ms")
			end(w.backend)
			w.eventually("the agent dies with its backend", func() bool { return gone(a.pid, w.seen[a.pid]) })
			status := w.start(off).serving().status
			require.Equal(t, recovery.VerdictOff, status.Recovery.Verdict)
			require.False(t, status.Control.Adopted)
			require.Zero(t, status.Recovery.Counts[recovery.OutcomeRetracked])
			require.Equal(t, recovery.StateInterrupted, a.view().State)
		})
	}
}

// S-005.5, S-005.7, O-002.9: turned off while a detached server from earlier
// runs, the next backend has it prove itself, ends it with its agents, and
// leaves their sessions resumable.
func TestTurnedOffTheDetachedServerIsEnded(t *testing.T) {
	w := newWorld(t)
	w.start().serving()
	a := w.agent("detached")
	a.prompt("one", "stream until file go every 5ms")
	w.backend.kill()
	status := w.start(off).serving().status
	require.Equal(t, recovery.VerdictOff, status.Recovery.Verdict)
	require.Empty(t, status.Recovery.UnendedServer)
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeStale: 1}, status.Recovery.Counts)
	require.True(t, gone(a.pid, w.seen[a.pid]), "ended before its record was repaired")
	require.Equal(t, recovery.StateInterrupted, a.view().State)
}
