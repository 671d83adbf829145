package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// S-003.6, S-002.7, B-12: a session whose agent lives on under a server that was
// left alone is not taken for stale by the boot that adopts another server, in
// which its instance cannot be. Once that agent is gone, it is.
func TestAnAgentOfAnotherServerIsNotForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := besiege(w)
	starvedAfter(s, "located")
	second := w.agent("second")
	s.backend.kill()

	status := s.start().serving().status
	require.True(t, status.Control.Adopted)
	require.NotEqual(t, s.record.ServerIdentity, status.Control.ServerIdentity)
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 1, recovery.OutcomeUnknown: 1}, status.Recovery.Counts)
	require.True(t, s.agent.runs())
	require.Equal(t, recovery.StateRunning, s.agent.view().State)
	refused(t, s.agent, userapi.CodeRecovering)
	second.unharmed()
	s.backend.kill()

	shutDown(w, s.record, s.token)
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 1, recovery.OutcomeStale: 1}, s.start().serving().status.Recovery.Counts)
	s.resumable()
}
