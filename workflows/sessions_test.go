package workflows

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

func sessionEnv(t *testing.T) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(StopWithRetry, workflow.RegisterOptions{Name: TypeStopWithRetry})
	env.RegisterWorkflowWithOptions(GuardedResume, workflow.RegisterOptions{Name: TypeGuardedResume})
	env.RegisterWorkflowWithOptions(Launch, workflow.RegisterOptions{Name: TypeLaunch})
	named := map[string]any{
		calls.StopInstance: func(context.Context, calls.StopInstanceInput) (calls.StopResult, error) {
			return calls.StopResult{}, nil
		},
		calls.FinishStop:     func(context.Context, calls.FinishStopInput) error { return nil },
		calls.BeginStart:     func(_ context.Context, in calls.StartIntent) (calls.StartIntent, error) { return in, nil },
		calls.CreateInstance: func(context.Context, calls.StartIntent) error { return nil },
		calls.AwaitReady:     func(context.Context, calls.StartIntent) error { return nil },
		calls.PublishStarted: func(context.Context, calls.StartIntent) error { return nil },
		calls.AbandonStart: func(context.Context, calls.AbandonInput) (calls.ResumeResult, error) {
			return calls.ResumeResult{}, nil
		},
	}
	for name, fn := range named {
		env.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
	return env
}

func stopInput(reason recovery.StopReason) calls.StopInput {
	return calls.StopInput{InstanceID: "i1", SessionID: "s1", Reason: reason, ReadTimeout: 2 * time.Second, ReadRetries: 2}
}

// S-002.15: attempts are retries plus one, an exhausted budget is a result that
// names why, and only a user's stop settles the session.
func TestStopWithRetryBudget(t *testing.T) {
	cases := []struct {
		name     string
		reason   recovery.StopReason
		failures int
		failWith error
		attempts int
		want     calls.StopResult
		settled  bool
	}{
		{"at once", recovery.StopOrphan, 0, nil, 1, calls.StopResult{Stopped: true}, false},
		{"at the last attempt", recovery.StopOrphan, 2, errUnanswered, 3, calls.StopResult{Stopped: true}, false},
		{"exhausted", recovery.StopOrphan, 9, errUnanswered, 3, calls.StopResult{Detail: calls.FailureUnanswered}, false},
		{"survivor", recovery.StopOrphan, 9, temporal.NewApplicationError("survived", calls.FailureStop), 3, calls.StopResult{Detail: calls.FailureStop}, false},
		{"superseded is not retried", recovery.StopOrphan, 9, temporal.NewNonRetryableApplicationError("newer", calls.FailureSuperseded, nil), 1, calls.StopResult{Detail: calls.FailureSuperseded}, false},
		{"a user's, exhausted", recovery.StopUser, 9, errUnanswered, 3, calls.StopResult{Detail: calls.FailureUnanswered}, true},
		{"a user's", recovery.StopUser, 0, nil, 1, calls.StopResult{Stopped: true}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env := sessionEnv(t)
			attempts := 0
			env.OnActivity(calls.StopInstance, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.StopInstanceInput) (calls.StopResult, error) {
				require.Equal(t, time.Second, in.Grace, "half the read timeout")
				if attempts++; attempts <= c.failures {
					return calls.StopResult{}, c.failWith
				}
				return calls.StopResult{Stopped: true}, nil
			})
			settled := false
			env.OnActivity(calls.FinishStop, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.FinishStopInput) error {
				settled = true
				require.Equal(t, c.want.Stopped, in.Stopped)
				return nil
			}).Maybe()
			env.ExecuteWorkflow(TypeStopWithRetry, stopInput(c.reason))
			require.NoError(t, env.GetWorkflowError())
			var result calls.StopResult
			require.NoError(t, env.GetWorkflowResult(&result))
			require.Equal(t, c.want, result)
			require.Equal(t, c.attempts, attempts)
			require.Equal(t, c.settled, settled)
		})
	}
}

// R-6, W-2: whatever the end of the launch, failed, timed out or refused for
// good, it is undone, and the cause is said in words made for users.
func TestGuardedResumeUndoesAFailedLaunch(t *testing.T) {
	refused := temporal.NewNonRetryableApplicationError("the command was not found", calls.FailureAgentStart, nil)
	cases := []struct {
		name   string
		create error
		await  func(ctx context.Context) error
		cause  string
	}{
		{"create refused", refused, nil, "the command was not found"},
		{"agent failed", nil, func(context.Context) error { return refused }, "the command was not found"},
		{"never ready", nil, func(context.Context) error { return errors.New("not yet") }, "the agent was not ready within the launch deadline"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env := sessionEnv(t)
			env.OnActivity(calls.CreateInstance, mock.Anything, mock.Anything).Return(c.create)
			if c.await != nil {
				env.OnActivity(calls.AwaitReady, mock.Anything, mock.Anything).Return(func(ctx context.Context, _ calls.StartIntent) error { return c.await(ctx) })
			}
			env.OnActivity(calls.AbandonStart, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.AbandonInput) (calls.ResumeResult, error) {
				require.Equal(t, c.cause, in.Cause)
				require.NotEmpty(t, in.Intent.ExecutionID)
				return calls.ResumeResult{State: recovery.StateFailed, Cause: in.Cause}, nil
			}).Once()
			env.ExecuteWorkflow(TypeGuardedResume, calls.ResumeInput{SessionID: "s1", Mode: calls.ResumeNew, LaunchDeadline: 20 * time.Second})
			require.NoError(t, env.GetWorkflowError())
			var result calls.ResumeResult
			require.NoError(t, env.GetWorkflowResult(&result))
			require.Equal(t, recovery.StateFailed, result.State)
			env.AssertExpectations(t)
		})
	}
}

// A start that succeeds waits for input, under the execution id that was
// written down before the spawn, and undoes nothing.
func TestGuardedResumeStartsTheAgent(t *testing.T) {
	env := sessionEnv(t)
	var began, created string
	env.OnActivity(calls.BeginStart, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.StartIntent) (calls.StartIntent, error) {
		began = in.ExecutionID
		in.Generation = 1
		return in, nil
	})
	env.OnActivity(calls.CreateInstance, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.StartIntent) error {
		created = in.ExecutionID
		return nil
	})
	env.OnActivity(calls.AbandonStart, mock.Anything, mock.Anything).Return(calls.ResumeResult{}, errors.New("must not be undone")).Maybe()
	env.ExecuteWorkflow(TypeGuardedResume, calls.ResumeInput{SessionID: "s1", Mode: calls.ResumeNew, LaunchDeadline: time.Minute})
	require.NoError(t, env.GetWorkflowError())
	var result calls.ResumeResult
	require.NoError(t, env.GetWorkflowResult(&result))
	require.Equal(t, recovery.StateWaitingForInput, result.State)
	require.NotEmpty(t, began)
	require.Equal(t, began, created)
	require.Equal(t, began, result.ExecutionID)
}
