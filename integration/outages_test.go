package integration

import (
	"errors"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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

// outage is a way in which Postgres is away.
type outage struct {
	name  string
	begin func(*testing.T, *postgrestest.Server) (end func())
}

var (
	stopped = outage{"stopped", func(t *testing.T, database *postgrestest.Server) func() {
		database.Stop(t)
		return func() { database.Start(t) }
	}}
	hung = outage{"hung", func(t *testing.T, database *postgrestest.Server) func() { return freeze(t, database.DSN()) }}
)

// S-002.6, S-002.11, S-002.12, S-003.7, W-8, B-1, B-2: Postgres is away from a
// step of a pass on, for longer than the recovery deadline, and back again, stopped
// or neither answering nor hanging up: nothing is stopped, repaired or lost, and
// every session is re-tracked, by that pass or by one that begins by itself. The
// same while users are served.
func TestPostgresIsAwayDuringAPass(t *testing.T) {
	t.Parallel()
	database := postgrestest.Own(t) // outlasts the world
	w := newWorld(t)
	w.settings["KANDEV_DATABASE_DSN"] = database.DSN()
	c := crewIn(w, occupations...)
	outages := map[string][]outage{"rotated": {stopped}, "enumerated": {hung}}
	for _, step := range stepsOr("rotated", "enumerated") {
		if long() {
			outages[step] = []outage{stopped, hung}
		}
		for _, o := range outages[step] {
			t.Run(step+"/"+o.name, func(t *testing.T) {
				w.within(t)
				h := holdAt(t, "adoption."+step)
				b := w.start(append(h.settings, hasty...)...)
				t.Cleanup(b.kill)
				h.reached()
				end := o.begin(t, database)
				h.release()
				w.passes(hastyDeadline + 500*time.Millisecond)
				for _, a := range c.agents {
					require.True(t, a.runs())
				}
				end()
				c.areTracked(b)
			})
		}
	}
	t.Run("served", func(t *testing.T) {
		w.within(t)
		b := w.start().serving()
		t.Cleanup(b.kill)
		end := stopped.begin(t, database)
		var refusal *userapi.Error
		_, err := b.client.Session(t.Context(), c.agents[0].session)
		require.ErrorAs(t, err, &refusal)
		require.True(t, refusal.Retryable)
		w.passes(time.Second)
		end()
		c.areTracked(b)
	})
	c.finish()
}

// freeze keeps every process of a Postgres server from running until thaw is
// called. It may be repeated.
func freeze(t *testing.T, dsn string) (thaw func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	var first string
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)`).Scan(&first))
	postmaster, err := strconv.Atoi(first)
	require.NoError(t, err)
	rows, err := conn.Query(t.Context(), `SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()`)
	require.NoError(t, err)
	others, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	all := append([]int{postmaster}, others...)
	thaw = func() { signal(t, all, syscall.SIGCONT) }
	t.Cleanup(thaw)
	signal(t, all, syscall.SIGSTOP)
	return thaw
}

func signal(t *testing.T, pids []int, s syscall.Signal) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); !errors.Is(err, syscall.ESRCH) {
			require.NoError(t, err)
		}
	}
}

// passes waits for a time, as an outage lasts.
func (w *world) passes(d time.Duration) {
	w.t.Helper()
	until := time.Now().Add(d)
	w.eventually("time passes", func() bool { return time.Now().After(until) })
}
