//go:build unix

package activities_test

import (
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/kandev/recovery/activities"
	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/internal/backend/counters"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/liveness"
	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/internal/stack/postgrestest"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

// playAgent makes this test binary an agent.
const playAgent = "play-agent"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == playAgent {
		os.Exit(fakeagent.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(postgrestest.Main(m))
}

const (
	inst = "installation"
	boot = "boot"
)

func scrape(t *testing.T, c *counters.Counters) string {
	t.Helper()
	answer := httptest.NewRecorder()
	c.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return answer.Body.String()
}

// W-9: what a pass decided of its sessions is counted when it is reconciled, once
// although the activity and a later reconciliation repeat it.
func TestReconciliationCounts(t *testing.T) {
	db, counted := storetest.Open(t), counters.New(zap.NewNop())
	require.NoError(t, db.EnsureInstallation(t.Context(), inst))
	inventory := &activities.Inventory{
		Store: db, Executions: execution.New(), Counters: counted, Logger: zap.NewNop(), Installation: inst, BootID: boot,
	}
	in := calls.ReconcileInput{Pass: calls.Pass{Installation: inst, BootID: boot, Number: 1}, Outcomes: []calls.SessionOutcome{
		{SessionID: "a", Outcome: recovery.OutcomeMissingValue, Instance: "i", Detail: string(recovery.ValueCommand)},
		{SessionID: "b", Outcome: recovery.OutcomeReadFailed, Instance: "j"},
		{SessionID: "c", Outcome: recovery.OutcomeDeadline, Instance: "k", StopInFlight: true},
		{SessionID: "d", Outcome: recovery.OutcomeAmbiguous},
	}}
	for range 2 {
		_, err := inventory.ReconcileRecords(t.Context(), in)
		require.NoError(t, err)
	}
	in.Outcomes = []calls.SessionOutcome{{SessionID: "c", Outcome: recovery.OutcomeUnstopped, Instance: "k"}}
	_, err := inventory.ReconcileRecords(t.Context(), in)
	require.NoError(t, err)
	found := scrape(t, counted)
	for _, series := range []string{
		`missing_values_total{value="command"}`, "reads_exhausted_total", "deadline_cut_total", "ambiguous_joins_total",
		"sessions_unstopped_total",
	} {
		require.Contains(t, found, "kandev_recovery_"+series+" 1\n")
	}
}

// W-9, S-002.8, S-002.16: a launch that recovery refuses when it is carried out is
// counted by its reason, as one that is refused when it is asked for.
func TestRefusedLaunchesCount(t *testing.T) {
	db, counted, executions := storetest.Open(t), counters.New(zap.NewNop()), execution.New()
	require.NoError(t, db.EnsureInstallation(t.Context(), inst))
	require.NoError(t, db.PutProfile(t.Context(), inst, store.Profile{ID: "p", Agent: "fake", Command: []string{"fake"}}))
	session, err := db.CreateSession(t.Context(), store.NewSession{Installation: inst, ProfileID: "p", Workspace: t.TempDir()})
	require.NoError(t, err)
	sessions := &activities.Sessions{
		Store: db, Executions: executions, Counters: counted, Logger: zap.NewNop(), Installation: inst, BootID: boot,
		Liveness: &liveness.Checker{Store: db, Executions: executions, Logger: zap.NewNop(), Installation: inst, BootID: boot, ReadTimeout: time.Second},
	}
	begin := func() *temporal.ApplicationError {
		_, err := sessions.BeginStart(t.Context(), calls.StartIntent{SessionID: session.ID, ExecutionID: "e"})
		var refusal *temporal.ApplicationError
		require.ErrorAs(t, err, &refusal)
		return refusal
	}
	require.False(t, begin().NonRetryable())
	executions.KeepGuard(session.ID, "i")
	require.True(t, begin().NonRetryable())
	for _, reason := range []string{"recovery_in_progress", "agent_unstopped"} {
		require.Contains(t, scrape(t, counted), `kandev_recovery_launches_refused_total{reason="`+reason+`"} 1`+"\n")
	}
}
