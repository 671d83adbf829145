package workflows

import (
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// GuardedResume gives a session its agent: it moves the session to STARTING and
// writes down the launch before anything is spawned, runs the launch in a child
// whose run timeout is the launch deadline, and undoes it whatever the child's
// end was. The undoing is here because a workflow that times out runs no code
// of its own any more.
//
// A failed start is a result with its cause, not an error: the workflow did
// what it is for.
func GuardedResume(ctx workflow.Context, in calls.ResumeInput) (calls.ResumeResult, error) {
	intent := calls.StartIntent{
		SessionID:   in.SessionID,
		ExecutionID: workflow.GetInfo(ctx).WorkflowExecution.RunID,
	}
	err := workflow.ExecuteActivity(takenOver(ctx, storeTimeout, "record the launch"), calls.BeginStart, intent).Get(ctx, &intent)
	if err != nil {
		return calls.ResumeResult{}, err
	}
	child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            "launch/" + in.SessionID + "/" + workflowNumber(intent.Generation),
		WorkflowRunTimeout:    in.LaunchDeadline,
		WaitForCancellation:   true,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         "launch of session " + in.SessionID,
	})
	err = workflow.ExecuteChildWorkflow(child, TypeLaunch, in, intent).Get(ctx, nil)
	if err == nil {
		return calls.ResumeResult{State: recovery.StateWaitingForInput, ExecutionID: intent.ExecutionID}, nil
	}
	cause := launchCause(err)
	undo, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	abandon := calls.AbandonInput{Intent: intent, Cause: cause}
	var restored calls.ResumeResult
	if err := workflow.ExecuteActivity(takenOver(undo, storeTimeout, "undo the launch"), calls.AbandonStart, abandon).Get(undo, &restored); err != nil {
		return calls.ResumeResult{}, err
	}
	return restored, nil
}

// Launch creates the instance, waits until its conversation is open, and
// publishes the session. Its activities rely on nothing that an earlier one
// left in memory, so that the next backend can go on with it (W-3).
func Launch(ctx workflow.Context, in calls.ResumeInput, intent calls.StartIntent) error {
	create := takenOver(ctx, in.LaunchDeadline, "create the instance")
	if err := workflow.ExecuteActivity(create, calls.CreateInstance, intent).Get(ctx, nil); err != nil {
		return err
	}
	await := takenOver(ctx, in.LaunchDeadline, "wait for the agent")
	if err := workflow.ExecuteActivity(await, calls.AwaitReady, intent).Get(ctx, nil); err != nil {
		return err
	}
	publish := takenOver(ctx, storeTimeout, "publish the session")
	return workflow.ExecuteActivity(publish, calls.PublishStarted, intent).Get(ctx, nil)
}

// launchCause says in one bounded phrase why a launch failed. An application
// error's message was made for users by its activity; anything else is named by
// its class only.
func launchCause(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return "the agent was not ready within the launch deadline"
	}
	if temporal.IsCanceledError(err) {
		return "the launch was cancelled"
	}
	return "the launch did not complete"
}
