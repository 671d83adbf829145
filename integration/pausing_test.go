package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/demo"
	"github.com/kandev/recovery/recovery"
)

// S-001.5, S-001.6, S-001.10, B-1, B-10: 3,000 updates while nobody is attached,
// where ten may be kept. The agents come to a standstill, with standard error
// still read. One is stopped as it stands: the stop completes, although it allows
// ten minutes for it and SIGTERM does nothing, and what was not delivered is gone.
// The other one goes on with the next backend, and nothing of it is missing.
func TestADetachedAgentPausesAtItsLimit(t *testing.T) {
	t.Parallel()
	const limit, updates = 10, 3000
	w := newWorld(t)
	w.settings["KANDEV_ACP_DETACHED_EVENT_LIMIT"] = fmt.Sprint(limit)
	w.start().serving()
	goesOn, stopped := w.agent("goes-on"), w.agent("stopped", "--ignore-sigterm")
	for _, a := range []*agent{goesOn, stopped} {
		a.prompt("one", fmt.Sprintf("complain until file %s; wait file go; stream %d",
			filepath.Join(w.dir, "quiet"), updates))
	}
	u := leave(w)
	ids := map[string]string{}
	for id, instance := range u.instances() {
		ids[instance.SessionID] = id
	}
	for _, a := range []*agent{goesOn, stopped} {
		a.touch("go")
		a.pauses(limit)
		require.Less(t, a.produced().Updates, updates, "an agent cannot be ahead by more than pipes hold")
		// The turn's beginning may have been committed before the backend died.
		require.Contains(t, []int64{limit, limit + 1}, u.instances()[ids[a.session]].LastSeq)
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	absent, err := u.server.Stop(ctx, ids[stopped.session], 10*time.Minute)
	require.NoError(t, err)
	require.False(t, absent)
	require.False(t, stopped.runs())

	w.start().serving()
	goesOn.committedExactly(updates + 2)
	goesOn.undisturbed()
	require.Equal(t, recovery.StateInterrupted, stopped.view().State)
	require.Zero(t, demo.Holes(stopped.transcript()))
	require.LessOrEqual(t, stopped.view().Position, int64(1))
}
