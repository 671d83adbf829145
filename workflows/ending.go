package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
)

// serverEndTimeout bounds the wait for the end of a server that has decided to
// end: every agent of it may use its grace.
const serverEndTimeout = time.Minute

// endServer has a proven server end with all its agents, by the ownership
// shutdown, within the budget of a stop and whatever the deadline does. A
// failure is recorded: the server is left alone from then on, and nothing of it
// is repaired (O-004.7).
func (a *adoption) endServer(located calls.Located) {
	ctx, cancel := workflow.NewDisconnectedContext(a.ctx)
	defer cancel()
	input := calls.EndInput{Pass: a.in.Pass, ServerIdentity: located.ServerIdentity}
	end := budget(ctx, a.in.ReadTimeout, a.in.ReadRetries, "end the server and its agents")
	err := workflow.ExecuteActivity(end, calls.EndServer, input).Get(ctx, nil)
	if err == nil {
		err = workflow.ExecuteActivity(awaitingEnd(ctx), calls.AwaitServerEnd, input).Get(ctx, nil)
	}
	if err != nil && !a.storeLost(err) {
		a.report.UnendedServer, a.report.UnendedReason = located.ServerIdentity, failureType(err)
	}
}

// awaitingEnd looks again and again until the server is gone.
func awaitingEnd(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    storeTimeout,
		ScheduleToCloseTimeout: serverEndTimeout,
		Summary:                "wait for the server's end",
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: waitInterval, BackoffCoefficient: 1},
	})
}
