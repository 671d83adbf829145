package integration

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// S-003.6, S-002.7: a session that the pass left undecided is judged anew with
// every request. While its agent may live it is refused, retryably; once the
// agent's process is proven gone, its record is repaired, with the token kept,
// and it is not locked out any more.
func TestAnUndecidedSessionIsJudgedAnewPerRequest(t *testing.T) {
	w := newWorld(t)
	s := besiege(w)
	// A server that answers as ours and cannot prove it is left running.
	s.bend(`UPDATE control_server_records SET server_identity = 'another'`)
	status := w.start().serving().status
	require.Equal(t, recovery.RefusedIdentityMismatch, status.Recovery.Reason)
	refused(t, s.agent, userapi.CodeRecovering)
	require.Equal(t, recovery.StateRunning, s.agent.view().State)

	process, err := os.FindProcess(s.agent.pid)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	w.eventually("the agent is gone", func() bool { return gone(s.agent.pid, w.seen[s.agent.pid]) })
	refused(t, s.agent, userapi.CodeNoAgent)
	s.resumable()
	shutDown(w, s.record, s.token)
}
