//go:build unix

package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/store"
)

// S-001.9: which permission requests wait is read from the events about them, a
// page at a time, of the session alone; the rest of a long transcript is not even
// looked at.
func TestPermissionEvents(t *testing.T) {
	b := setup(t)
	sess, other := b.waiting("i"), b.waiting("j")
	var seqs []int64
	for n := range int64(3000) {
		seqs = append(seqs, n+1)
	}
	long := batch(sess, "i", seqs...)
	about := map[int64]string{7: "permission_request", 1500: "permission_settled", 2000: "permission_request", 3000: "agent_exited"}
	for seq, kind := range about {
		long.Events[seq-1].Kind = kind
	}
	b.commit(long)
	b.commit(store.Batch{
		Installation: b.inst, SessionID: other.ID, InstanceID: "j", BootID: boot,
		Events: []store.EventRow{{Seq: 1, Kind: "permission_request", At: time.Now()}},
	})
	read := func(after int64, limit int) (found []string) {
		events, err := b.PermissionEventsAfter(b.ctx, b.inst, sess.ID, after, limit)
		require.NoError(t, err)
		for _, e := range events {
			require.Equal(t, "i", e.InstanceID)
			found = append(found, fmt.Sprintf("%d %s", e.Position, e.Kind))
		}
		return found
	}
	require.Equal(t, []string{"7 permission_request", "1500 permission_settled"}, read(0, 2))
	require.Equal(t, []string{"2000 permission_request", "3000 agent_exited"}, read(1500, 100))
	require.Empty(t, read(3000, 100))

	conn := b.direct()
	_, err := conn.Exec(b.ctx, `ANALYZE agent_events`)
	require.NoError(t, err)
	var plan string
	require.NoError(t, conn.QueryRow(b.ctx, `EXPLAIN (FORMAT JSON) `+store.SelectPermissionEvents, b.inst, sess.ID, 0, 100).Scan(&plan))
	require.Contains(t, plan, "agent_events_permissions")
}
