package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/worker"
)

// errCommand is a failure whose message was made for users.
var errCommand = temporal.NewNonRetryableApplicationError("the command was not found", calls.FailureAgentStart, nil)

// resumed checks the history of a resume whose agent started.
func resumed(t *testing.T, h history) {
	t.Helper()
	got := result[calls.ResumeResult](t, h)
	require.Equal(t, recovery.StateWaitingForInput, got.State)
	require.NotEmpty(t, got.ExecutionID)
	require.Zero(t, h.attempts(calls.AbandonStart))
}

// undone checks the history of a resume whose launch failed and was undone.
func undone(cause string) func(*testing.T, history) {
	return func(t *testing.T, h history) {
		t.Helper()
		require.Equal(t, calls.ResumeResult{State: recovery.StateFailed, Cause: cause}, result[calls.ResumeResult](t, h))
		require.Equal(t, 1, h.attempts(calls.AbandonStart))
	}
}

// launched is the launch of a resume's branch, which ended like this.
func launched(name string, closed enumspb.EventType) []childBranch {
	return []childBranch{{
		name: name,
		id:   func(s *stage) string { return "launch/" + s.name + "/1" },
		check: func(t *testing.T, h history) {
			t.Helper()
			require.Equal(t, closed, h.closed())
		},
	}}
}

// neverReady is an agent that does not become ready.
func neverReady(s *stage) map[string]any {
	return map[string]any{calls.AwaitReady: func(ctx context.Context, _ calls.StartIntent) error { return s.hang(ctx) }}
}

func resumes() []branch {
	return []branch{{
		name: "resume-started", begin: resume, check: resumed,
		children: launched("launch-started", enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED),
	}, {
		name: "resume-conflict", begin: resume,
		peers: func(*stage) map[string]any {
			return map[string]any{calls.BeginStart: fail[calls.StartIntent, calls.StartIntent](refusal(calls.FailureConflict))}
		},
		check: func(t *testing.T, h history) {
			require.Equal(t, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, h.closed())
			require.Zero(t, h.attempts(calls.AbandonStart), "nothing was begun")
		},
	}, {
		name: "resume-create-refused", begin: resume,
		peers: func(*stage) map[string]any {
			return map[string]any{calls.CreateInstance: done[calls.StartIntent](errCommand)}
		},
		check:    undone("the command was not found"),
		children: launched("launch-create-refused", enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED),
	}, {
		name: "resume-agent-failed", begin: resume,
		peers: func(*stage) map[string]any {
			return map[string]any{calls.AwaitReady: done[calls.StartIntent](errCommand)}
		},
		check:    undone("the command was not found"),
		children: launched("launch-agent-failed", enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED),
	}, {
		// The child runs into its run timeout, which runs no code of its own; its
		// parent undoes the launch.
		name: "resume-launch-deadline", begin: resume, peers: neverReady,
		budgets:  worker.Budgets{Deadline: patience, ReadTimeout: patience, LaunchDeadline: time.Second},
		check:    undone("the agent was not ready within the launch deadline"),
		children: launched("launch-timed-out", enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT),
	}, {
		name: "resume-cancelled", begin: resume, peers: neverReady, during: cancelHanging,
		check:    undone("the launch was cancelled"),
		children: launched("launch-cancelled", enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED),
	}}
}
