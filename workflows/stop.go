package workflows

import (
	"errors"
	"strconv"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

func workflowNumber(n int64) string { return strconv.FormatInt(n, 10) }

// StopWithRetry ends one instance with its whole process tree, within the
// budget of its input. An instance that is already absent is stopped. It
// returns an error only when it was cancelled: an exhausted budget is a result,
// because its caller must act on it (S-002.15).
func StopWithRetry(ctx workflow.Context, in calls.StopInput) (calls.StopResult, error) {
	var result calls.StopResult
	err := workflow.ExecuteActivity(
		budget(ctx, in.ReadTimeout, in.ReadRetries, "stop "+in.InstanceID+": "+string(in.Reason)),
		calls.StopInstance,
		calls.StopInstanceInput{
			InstanceID: in.InstanceID, SessionID: in.SessionID, Reason: in.Reason, BootID: in.BootID,
			Grace: in.ReadTimeout / 2,
		},
	).Get(ctx, &result)
	if err != nil {
		if temporal.IsCanceledError(err) {
			return calls.StopResult{}, err
		}
		result = calls.StopResult{Detail: failureType(err)}
	}
	if in.Reason != recovery.StopUser {
		return result, nil
	}
	finish := calls.FinishStopInput{
		SessionID: in.SessionID, InstanceID: in.InstanceID,
		Stopped: result.Stopped, Detail: result.Detail,
	}
	err = workflow.ExecuteActivity(takenOver(ctx, storeTimeout, "settle the stop"), calls.FinishStop, finish).Get(ctx, nil)
	return result, err
}

// failureType names why an activity failed, without its message: the type of
// its application error, or that it did not answer.
func failureType(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() != "" {
		return app.Type()
	}
	return calls.FailureUnanswered
}
