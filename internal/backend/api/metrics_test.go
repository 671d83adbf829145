package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/backend/api"
	"github.com/kandev/recovery/userapi"
)

// scrape reads the counters as a collector does.
func (b *bench) scrape(t *testing.T) string {
	t.Helper()
	text, err := b.Metrics(t.Context())
	require.NoError(t, err)
	return text
}

// W-9: the counters are there before Postgres is, for whoever has the token, and
// every launch that recovery refuses is among them.
func TestMetrics(t *testing.T) {
	b := listen(t)
	status, code := b.request(t, http.MethodGet, userapi.RouteMetrics, "", func(r *http.Request) { r.Header.Del("Authorization") })
	require.Equal(t, 401, status)
	require.Equal(t, userapi.CodeUnauthenticated, code)
	require.Contains(t, b.scrape(t), "kandev_recovery_adoptions_total 0\n")

	opened := serve(t)
	b.server.Serve(api.Services{
		Installation: inst, BootID: boot, Store: opened.store, Owner: opened.owner, Engine: opened.engine,
		Changes: opened.changes, Executions: closed(), Liveness: opened.liveness(),
	})
	for range 2 {
		_, err := b.CreateSession(t.Context(), userapi.CreateSession{ProfileID: "p", Workspace: t.TempDir()})
		refused(t, userapi.CodeRecovering, err)
	}
	counted := b.scrape(t)
	require.Contains(t, counted, `kandev_recovery_launches_refused_total{reason="recovery_in_progress"} 2`)
	require.Contains(t, counted, `kandev_recovery_launches_refused_total{reason="already_running"} 0`)
}
