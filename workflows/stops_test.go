package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/workflows"
)

// stopEnds checks the history of a stop that ended by itself.
func stopEnds(want calls.StopResult, attempts int) func(*testing.T, history) {
	return func(t *testing.T, h history) {
		t.Helper()
		require.Equal(t, want, result[calls.StopResult](t, h))
		require.Equal(t, attempts, h.attempts(calls.StopInstance))
	}
}

// settles is stopEnds of a user's stop, which settles the session.
func settles(want calls.StopResult, attempts int) func(*testing.T, history) {
	return func(t *testing.T, h history) {
		t.Helper()
		stopEnds(want, attempts)(t, h)
		settled := inputs[calls.FinishStopInput](t, h, calls.FinishStop)
		require.Len(t, settled, 1)
		require.Equal(t, want.Stopped, settled[0].Stopped)
	}
}

// bootStop starts a stop as a pass does.
func bootStop(ctx context.Context, s *stage) (client.WorkflowRun, error) {
	return s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: workflows.StopID("i1", s.name+"-1"), TaskQueue: workflows.BootQueue(s.name, s.name),
	}, workflows.TypeStopWithRetry, calls.StopInput{
		InstanceID: "i1", SessionID: "s1", Reason: recovery.StopOrphan, BootID: s.name,
		ReadTimeout: s.engine.Budgets.ReadTimeout, ReadRetries: s.engine.Budgets.ReadRetries,
	})
}

func stopping(stop func(context.Context, calls.StopInstanceInput) (calls.StopResult, error)) func(*stage) map[string]any {
	return func(*stage) map[string]any { return map[string]any{calls.StopInstance: stop} }
}

// neverStops does not answer.
func neverStops(s *stage) map[string]any {
	return map[string]any{calls.StopInstance: func(ctx context.Context, _ calls.StopInstanceInput) (calls.StopResult, error) {
		return calls.StopResult{}, s.hang(ctx)
	}}
}

func cancelHanging(ctx context.Context, s *stage, run client.WorkflowRun) error {
	if err := s.await(ctx, eventHanging); err != nil {
		return err
	}
	return s.client.CancelWorkflow(ctx, run.GetID(), run.GetRunID())
}

func stops() []branch {
	exhausted := stopping(fail[calls.StopInstanceInput, calls.StopResult](errUnanswered))
	return []branch{
		{name: "stop-at-once", begin: bootStop, check: stopEnds(calls.StopResult{Stopped: true}, 1)},
		{
			name: "stop-absent", begin: bootStop,
			peers: stopping(answer[calls.StopInstanceInput](calls.StopResult{Stopped: true, Absent: true})),
			check: stopEnds(calls.StopResult{Stopped: true, Absent: true}, 1),
		},
		{
			name: "stop-retried", begin: bootStop,
			peers: stopping(func(ctx context.Context, _ calls.StopInstanceInput) (calls.StopResult, error) {
				if attempt(ctx) == 1 {
					return calls.StopResult{}, errUnanswered
				}
				return calls.StopResult{Stopped: true}, nil
			}),
			check: stopEnds(calls.StopResult{Stopped: true}, 2),
		},
		{
			name: "stop-exhausted", begin: bootStop, peers: exhausted,
			check: stopEnds(calls.StopResult{Detail: calls.FailureUnanswered}, 2),
		},
		{
			// A stop that hangs is cut at its timeout and tried again (S-002.15).
			name: "stop-timed-out", begin: bootStop, budgets: quick, peers: neverStops,
			check: stopEnds(calls.StopResult{Detail: calls.FailureUnanswered}, 2),
		},
		{
			name: "stop-superseded", begin: bootStop,
			peers: stopping(fail[calls.StopInstanceInput, calls.StopResult](refusal(calls.FailureSuperseded))),
			check: stopEnds(calls.StopResult{Detail: calls.FailureSuperseded}, 1),
		},
		{name: "stop-user", begin: userStop, check: settles(calls.StopResult{Stopped: true}, 1)},
		{
			name: "stop-user-exhausted", begin: userStop, peers: exhausted,
			check: settles(calls.StopResult{Detail: calls.FailureUnanswered}, 2),
		},
		{
			name: "stop-cancelled", begin: userStop, peers: neverStops, during: cancelHanging,
			check: func(t *testing.T, h history) {
				require.Equal(t, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, h.closed())
				require.Zero(t, h.attempts(calls.FinishStop))
			},
		},
	}
}
