package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/stack/postgrestest"
	"github.com/kandev/recovery/userapi"
)

// hasty is a small recovery deadline, with the budget of reads that it allows.
const hastyDeadline = 2 * time.Second

var hasty = []string{
	"KANDEV_ACP_RECOVERY_DEADLINE=" + hastyDeadline.String(),
	"KANDEV_ACP_RECOVERY_READ_TIMEOUT=200ms", "KANDEV_ACP_RECOVERY_READ_RETRIES=1",
}

// S-002.6, S-002.11, S-002.12, S-003.7, W-8, B-1, B-2: Postgres is stopped at a
// step of a pass, for longer than the recovery deadline, and started again:
// nothing is stopped, repaired or lost, and every session is re-tracked, by that
// pass or by one that begins by itself. The same while users are served.
func TestPostgresIsStoppedDuringAPass(t *testing.T) {
	database := postgrestest.Own(t) // outlasts the world
	w := newWorld(t)
	w.settings["KANDEV_DATABASE_DSN"] = database.DSN()
	c := crewIn(w, occupations...)
	for _, step := range stepsOr("rotated", "enumerated") {
		t.Run(step, func(t *testing.T) {
			w.within(t)
			h := holdAt(t, "adoption."+step)
			b := w.start(append(h.settings, hasty...)...)
			t.Cleanup(b.kill)
			h.reached()
			database.Stop(t)
			h.release()
			w.passes(hastyDeadline + 500*time.Millisecond)
			for _, a := range c.agents {
				require.True(t, a.runs())
			}
			database.Start(t)
			c.areTracked(b)
		})
	}
	t.Run("served", func(t *testing.T) {
		w.within(t)
		b := w.start().serving()
		t.Cleanup(b.kill)
		database.Stop(t)
		var refusal *userapi.Error
		_, err := b.client.Session(t.Context(), c.agents[0].session)
		require.ErrorAs(t, err, &refusal)
		require.True(t, refusal.Retryable)
		w.passes(time.Second)
		database.Start(t)
		c.areTracked(b)
	})
	c.finish()
}

// passes waits for a time, as an outage lasts.
func (w *world) passes(d time.Duration) {
	w.t.Helper()
	until := time.Now().Add(d)
	w.eventually("time passes", func() bool { return time.Now().After(until) })
}
