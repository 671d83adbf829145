package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
)

// B-7: two installations on one database and one Temporal, both of them new,
// start at the same time, lose their backends at the same time, and adopt each
// its own control server with its own sessions. Neither sees the other's.
func TestTwoInstallationsShareTheirPeers(t *testing.T) {
	t.Parallel()
	here, there := newWorld(t), newWorld(t)
	there.settings["KANDEV_DATABASE_DSN"] = here.settings["KANDEV_DATABASE_DSN"]
	worlds := []*world{here, there}
	var agents []*agent
	for _, w := range worlds {
		w.start()
	}
	for _, w := range worlds {
		w.backend.serving()
		a := w.agent("survives")
		a.prompt("one", "stream until file go every 5ms")
		agents = append(agents, a)
	}
	require.NotEqual(t, here.backend.status.Installation, there.backend.status.Installation)
	for _, w := range worlds {
		w.backend.kill()
	}
	for _, w := range worlds {
		w.start()
	}
	for i, w := range worlds {
		status := w.backend.serving().status
		require.True(t, status.Control.Adopted)
		require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 1}, status.Recovery.Counts)
		sessions, err := w.backend.client.Sessions(t.Context())
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		require.Equal(t, agents[i].session, sessions[0].ID)
		_, err = w.backend.client.Session(t.Context(), agents[1-i].session)
		require.Error(t, err, "the other installation's session is not there")
		agents[i].touch("go")
		require.Equal(t, "end_turn", agents[i].ended("one").Turn.StopReason)
		agents[i].unharmed()
	}
}
