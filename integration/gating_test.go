package integration

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/config"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

const off = "KANDEV_FEATURES_AGENT_SURVIVAL=false"

// S-005.1: with the capability off the control server and its agents die with
// the backend, whichever way it ends; the next one adopts nothing and leaves
// the session resumable.
func TestOffAgentsDieWithTheirBackend(t *testing.T) {
	t.Parallel()
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

// S-005.7, S-005.5, S-005.4: the setting is changed over the interface, in the
// file, while a backend runs: that alters no lifetime. Turned off, the agents
// outlive the SIGKILL of their backend all the same, and the next start ends them
// by the ownership shutdown. Turned on, they die with it all the same, and the one
// after that is on.
func TestAChangeActsAtTheNextStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	delete(w.settings, "KANDEV_FEATURES_AGENT_SURVIVAL")
	require.NoError(t, os.Mkdir(w.home, 0o700))
	file := filepath.Join(w.home, config.FileName)
	require.NoError(t, os.WriteFile(file, []byte("features:\n  agentSurvival: true # mine\n"), 0o600))
	on, off := userapi.Survival{State: userapi.SurvivalOn}, userapi.Survival{State: userapi.SurvivalOff}

	require.Equal(t, on, w.start().serving().status.Survival)
	detached := w.agent("detached")
	setting, err := w.backend.client.SetSurvival(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, userapi.SurvivalSetting{InForce: on, NextStart: off}, setting)
	require.True(t, w.backend.answers())
	require.Equal(t, on, w.backend.status.Survival)
	u := leave(w)
	require.Len(t, u.instances(), 1, "the control server goes on")
	require.True(t, detached.runs())

	status := w.start().serving().status
	require.Equal(t, off, status.Survival)
	require.Equal(t, recovery.VerdictOff, status.Recovery.Verdict)
	require.Empty(t, status.Recovery.UnendedServer)
	require.False(t, detached.runs(), "ended before its record was repaired")
	require.Equal(t, recovery.StateInterrupted, detached.view().State)

	bound := w.agent("bound")
	setting, err = w.backend.client.SetSurvival(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, userapi.SurvivalSetting{InForce: off, NextStart: on}, setting)
	w.backend.kill()
	w.eventually("the agent dies with its backend", func() bool { return !bound.runs() })
	require.Equal(t, on, w.start().serving().status.Survival)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "features:\n  agentSurvival: true # mine\n", string(content))
}
