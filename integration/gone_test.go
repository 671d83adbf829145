package integration

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// S-003.6, S-002.7, B-12: a control server, started or adopted, is killed while
// its backend lives. Once its process is proven gone, its sessions are settled,
// each by its own agent, and the next launch finds another server. An agent that
// lives on keeps its session held, retryably, until it is gone too.
func TestAControlServerThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start().serving()
	works, deaf := w.agent("works"), w.agent("deaf", unhearing...)
	works.prompt("one", "stream until file go every 5ms")
	u := leave(w)
	require.True(t, w.start().serving().status.Control.Adopted)
	for range 2 {
		u.dial()
		w.watch(u.record.PID)
		require.NoError(t, syscall.Kill(u.record.PID, syscall.SIGKILL))
		w.eventually("another server is in use", func() bool {
			return w.backend.answers() && w.backend.status.Control != nil && w.backend.status.Phase == userapi.PhaseServing &&
				w.backend.status.Control.ServerIdentity != u.record.ServerIdentity
		})
		require.False(t, w.backend.status.Control.Adopted)
		require.Equal(t, recovery.VerdictFresh, w.backend.status.Recovery.Verdict)

		w.eventually("the session has no agent, which is judged per request", func() bool {
			_, err := w.backend.client.Prompt(t.Context(), works.session, "again", "stream 1")
			var refusal *userapi.Error
			return errors.As(err, &refusal) && refusal.Code == userapi.CodeNoAgent
		})
		require.False(t, works.runs())
		u.isResumable(works)
		refused(t, deaf, userapi.CodeRecovering)
		require.Equal(t, recovery.StateWaitingForInput, deaf.view().State)
		require.Len(t, w.secrets(), 1, "that of the server that is gone is of no use")

		works = w.agent("next-" + u.record.ServerIdentity)
		works.prompt("one", "stream 3")
		works.ended("one")
		works.unharmed()
	}
	require.NoError(t, syscall.Kill(deaf.pid, syscall.SIGKILL))
	w.eventually("the last agent is gone", func() bool { return !deaf.runs() })
	refused(t, deaf, userapi.CodeNoAgent)
	u.isResumable(deaf)
}
