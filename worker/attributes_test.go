package worker

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/internal/stack/temporaltest"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/workflows"
)

// B-25, W-5: in a brand-new namespace, backends that boot at the same time all
// register the attributes, and may again; then a pass can be found by its
// installation, its outcomes and its refusal.
func TestANewNamespaceLearnsTheAttributes(t *testing.T) {
	c, namespace := temporaltest.Namespace(t)
	var boots errgroup.Group
	for range 8 {
		boots.Go(func() error { return RegisterAttributes(t.Context(), c, namespace) })
	}
	require.NoError(t, boots.Wait())
	require.NoError(t, RegisterAttributes(t.Context(), c, namespace))
	described, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	require.NoError(t, err)
	columns := slices.Sorted(maps.Values(described.GetConfig().GetCustomSearchAttributeAliases()))
	require.Equal(t, []string{"KandevInstallation", "KandevOutcome", "KandevRefusal", "KandevSession"}, columns, "each has one column of the index")

	e := testEngine(t, c)
	e.Attributes = true
	recoverRefused(t, e)
	for _, query := range []string{
		"KandevInstallation = '" + e.Installation + "'",
		"KandevOutcome = 'refused' AND KandevOutcome = 'unknown'",
		"KandevRefusal = 'identity_mismatch' AND WorkflowType = 'Adoption'",
	} {
		requireFound(t, c, namespace, query, workflows.AdoptionID(e.Installation))
	}
	require.NoError(t, e.StartResume(t.Context(), "s1"))
	require.NoError(t, e.StartStop(t.Context(), "s1", "i1", "r1"))
	requireFound(t, c, namespace, "KandevSession = 's1' AND KandevInstallation = '"+e.Installation+"'",
		workflows.ResumeID("s1"), workflows.StopID("i1", "r1"))
}

// B-25: while one backend registers, another waits for its turn.
func TestRegistrationsTakeTurns(t *testing.T) {
	c, namespace := temporaltest.Namespace(t)
	impatient, cancel := context.WithTimeout(t.Context(), 5*turnInterval)
	defer cancel()
	require.Error(t, inTurn(t.Context(), c, func() error { return RegisterAttributes(impatient, c, namespace) }))
	missing, err := missingAttributes(t.Context(), c.OperatorService(), namespace)
	require.NoError(t, err)
	require.Len(t, missing, len(attributes))
	require.NoError(t, RegisterAttributes(t.Context(), c, namespace))
}

// B-25: a start that meets attributes unknown to its namespace starts all the
// same, as each of the three does, and the pass ends.
func TestStartsWithUnknownAttributes(t *testing.T) {
	c, _ := temporaltest.Namespace(t)
	e := testEngine(t, c)
	e.Attributes = true
	recoverRefused(t, e)
	require.NoError(t, e.StartResume(t.Context(), "s1"))
	require.ErrorIs(t, e.StartResume(t.Context(), "s1"), ErrAlreadyResuming)
	require.NoError(t, e.StartStop(t.Context(), "s1", "i1", "r1"))
}

// B-25: where a name is taken by another type, or the operator service does not
// answer, the registration says so, and without attributes the pass ends.
func TestAttributesThatCannotBeRegistered(t *testing.T) {
	c, namespace := temporaltest.Namespace(t)
	_, err := c.OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: map[string]enumspb.IndexedValueType{
			workflows.AttributeOutcome.GetName(): enumspb.INDEXED_VALUE_TYPE_INT,
		},
	})
	require.NoError(t, err)
	require.ErrorIs(t, RegisterAttributes(t.Context(), c, namespace), ErrAttributeType)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, RegisterAttributes(ended, c, namespace))
	require.Error(t, RegisterAttributes(t.Context(), c, "no-such-namespace"))
	recoverRefused(t, testEngine(t, c))
}

// testEngine starts workflows for an installation of its own.
func testEngine(t *testing.T, c client.Client) *Engine {
	return &Engine{
		Client: c, Installation: "installation-" + uuid.NewString(), BootID: "boot",
		Budgets: Budgets{Deadline: 30 * time.Second, ReadTimeout: time.Second, ReadRetries: 0, LaunchDeadline: time.Minute},
	}
}

// recoverRefused runs a pass, of one session, that refuses the recorded server.
func recoverRefused(t *testing.T, e *Engine) {
	t.Helper()
	w := sdk.New(e.Client, workflows.BootQueue(e.Installation, e.BootID), sdk.Options{})
	w.RegisterWorkflowWithOptions(workflows.Adoption, workflow.RegisterOptions{Name: workflows.TypeAdoption})
	for name, answer := range map[string]any{
		calls.TakeGuards: func(context.Context, calls.Pass) (calls.GuardsTaken, error) {
			return calls.GuardsTaken{Records: []calls.GuardedRecord{{SessionID: "s1", ExecutionID: "i1"}}}, nil
		},
		calls.LocateServer: func(context.Context, calls.Pass) (calls.Located, error) {
			return calls.Located{Recorded: true, ServerIdentity: "server"}, nil
		},
		calls.EvaluateServer: func(context.Context, calls.EvaluateInput) (calls.Evaluation, error) {
			return calls.Evaluation{Verdict: recovery.VerdictRefused, Reason: recovery.RefusedIdentityMismatch}, nil
		},
		calls.ClosePass:        func(context.Context, calls.Pass) (calls.Closed, error) { return calls.Closed{}, nil },
		calls.ReconcileRecords: func(context.Context, calls.ReconcileInput) (calls.Reconciled, error) { return calls.Reconciled{}, nil },
		calls.StartServer:      func(context.Context, calls.Pass) (calls.Started, error) { return calls.Started{}, nil },
		calls.ReportPass:       func(context.Context, calls.ReportInput) error { return nil },
	} {
		w.RegisterActivityWithOptions(answer, activity.RegisterOptions{Name: name})
	}
	require.NoError(t, w.Start())
	defer w.Stop()
	run, err := e.StartAdoption(t.Context(), 1, true)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, run.Get(ctx, nil))
}

// requireFound waits until the query finds exactly the workflows of these ids;
// the server's index follows a little behind.
func requireFound(t *testing.T, c client.Client, namespace, query string, ids ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		listed, err := c.ListWorkflow(context.Background(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, Query: query})
		require.NoError(t, err)
		var found []string
		for _, execution := range listed.GetExecutions() {
			found = append(found, execution.GetExecution().GetWorkflowId())
		}
		assert.ElementsMatch(t, ids, found, query)
	}, patience, tick)
}
