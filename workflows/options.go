package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
)

// Fixed workflow types, as operators see them (W-5).
const (
	TypeAdoption      = "Adoption"
	TypeStopWithRetry = "StopWithRetry"
	TypeGuardedResume = "GuardedResume"
	TypeLaunch        = "Launch"
)

// Changes of workflows that may be running somewhere (W-6).
const changeBlockedAtDeadline = "a winner that waits at the deadline is stopped when a loser was not"

// Bounds of the activities, beyond the budgets that settings give.
const (
	// readMargin is added to a read's own timeout, so that the activity answers
	// with what the peer said rather than being cut by the engine.
	readMargin = 500 * time.Millisecond
	// storeTimeout bounds one attempt of an activity that only talks to Postgres.
	storeTimeout = 30 * time.Second
	// startServerTimeout bounds one attempt to start a control server.
	startServerTimeout = 60 * time.Second
	// heartbeatTimeout is how soon the death of the backend that runs an activity
	// of the user queue is noticed. Workers of that queue beat every second.
	heartbeatTimeout = 4 * time.Second
	// stopRunTimeout ends stops of a dead boot, whose queue nobody polls (W-7).
	stopRunTimeout = 2 * time.Minute
	// retryInterval is the smallest interval that the server accepts in effect:
	// the budgets of reads and stops have no delay between attempts (S-002.13).
	retryInterval = time.Millisecond
	// waitInterval and waitMaximum pace the attempts of what must succeed before
	// anything else may happen (W-8).
	waitInterval = 250 * time.Millisecond
	waitMaximum  = 5 * time.Second
)

// budget retries an activity retries times, without delay, each attempt
// bounded by timeout plus a margin (W-2, S-002.13).
func budget(ctx workflow.Context, timeout time.Duration, retries int, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: timeout + readMargin,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    retryInterval,
			BackoffCoefficient: 1,
			MaximumAttempts:    int32(retries) + 1,
		},
	})
}

// untilDone retries an activity until it succeeds or fails for good: what it
// waits for, usually Postgres, comes back or the context ends.
func untilDone(ctx workflow.Context, timeout time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: timeout,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    waitInterval,
			BackoffCoefficient: 2,
			MaximumInterval:    waitMaximum,
		},
	})
}

// takenOver is untilDone for an activity of the user queue, which the next
// backend goes on with when this one dies.
func takenOver(ctx workflow.Context, timeout time.Duration, summary string) workflow.Context {
	return workflow.WithHeartbeatTimeout(untilDone(ctx, timeout, summary), heartbeatTimeout)
}

// AdoptionID is the fixed id of an installation's adoption: a new boot's run
// replaces the dead boot's (W-3).
func AdoptionID(installation string) string { return "adoption/" + installation }

// ResumeID is the id of a session's resume: one at a time.
func ResumeID(session string) string { return "resume/" + session }

// StopID is the id of a stop. Request is the boot and pass for recovery's
// stops and the user's request otherwise.
func StopID(instance, request string) string { return "stop/" + instance + "/" + request }

// UserQueue is the task queue of what users request; it outlives a boot.
func UserQueue(installation string) string { return "recovery." + installation }

// PassthroughQueue is the task queue of what users request of passthrough
// sessions. Like UserQueue it outlives a boot; unlike that one it is served while
// recovery goes on (S-005.3).
func PassthroughQueue(installation string) string { return UserQueue(installation) + ".passthrough" }

// BootQueue is the task queue of one boot. A dead boot's queue has no poller,
// so nothing that it decided can act (W-7).
func BootQueue(installation, boot string) string { return "recovery." + installation + "." + boot }

func passRequest(p calls.Pass) string {
	return p.BootID + "-" + workflowNumber(p.Number)
}
