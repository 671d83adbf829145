package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
)

// O-001.8, O-003.5, S-002.7, S-003.1: nothing listens where the record points, and the
// agent's process is gone: a fresh server, and a session that can be resumed.
func TestAVanishedServerLeavesSessionsResumable(t *testing.T) {
	w := newWorld(t)
	s := besiege(w)
	shutDown(w, s.record, s.token)
	require.True(t, gone(s.agent.pid, w.seen[s.agent.pid]), "its agents go with it")
	status := w.start().serving().status
	require.Equal(t, recovery.VerdictFresh, status.Recovery.Verdict)
	require.Empty(t, status.Recovery.Reason)
	s.resumable()
}

// resumable checks that the session of the besieged server has lost its agent
// and nothing else (S-002.7, O-003.5).
func (s *siege) resumable() {
	s.t.Helper()
	view := s.agent.view()
	require.Equal(s.t, recovery.StateInterrupted, view.State)
	require.Equal(s.t, recovery.TaskInterrupted, view.TaskState)
	require.Equal(s.t, recovery.TurnAbandoned, view.Turn.State)
	kept, err := s.db.GetSession(s.t.Context(), s.installation(), s.agent.session)
	require.NoError(s.t, err)
	require.NotEmpty(s.t, kept.ProviderSessionID, "the resume token is kept")
}
