package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/workflows"
)

// Budgets are the settings that workflows get as input.
type Budgets struct {
	Deadline       time.Duration
	ReadTimeout    time.Duration
	ReadRetries    int
	LaunchDeadline time.Duration
}

// Engine starts the product's workflows for one installation and boot.
type Engine struct {
	Client       client.Client
	Installation string
	BootID       string
	Budgets      Budgets
	// Attributes: the namespace knows the product's search attributes
	// (RegisterAttributes); without, workflows are started without them.
	Attributes bool
	// Passthrough: users' requests are about passthrough sessions.
	Passthrough bool
}

// requests is the task queue of what users request.
func (e *Engine) requests() string {
	if e.Passthrough {
		return workflows.PassthroughQueue(e.Installation)
	}
	return workflows.UserQueue(e.Installation)
}

// Errors of Engine.
var (
	// ErrAlreadyResuming: the session's resume is running.
	ErrAlreadyResuming = errors.New("the session is already being started")
	// ErrUnavailable: Temporal did not answer; whether the workflow was started
	// is not known. Asking again with the same words is safe.
	ErrUnavailable = errors.New("the workflow engine did not answer")
)

// StartAdoption starts a recovery pass. The run of a dead boot under the same
// id is terminated: this is always a new run (W-3).
func (e *Engine) StartAdoption(ctx context.Context, pass int64, survival bool) (client.WorkflowRun, error) {
	input := calls.AdoptionInput{
		Pass:     calls.Pass{Installation: e.Installation, BootID: e.BootID, Number: pass},
		Survival: survival, Deadline: e.Budgets.Deadline,
		ReadTimeout: e.Budgets.ReadTimeout, ReadRetries: e.Budgets.ReadRetries,
	}
	run, err := e.execute(ctx, client.StartWorkflowOptions{
		ID:                                       workflows.AdoptionID(e.Installation),
		TaskQueue:                                workflows.BootQueue(e.Installation, e.BootID),
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         true,
		StaticSummary:                            "recovery of boot " + e.BootID,
		TypedSearchAttributes:                    e.labels(""),
	}, workflows.TypeAdoption, input)
	if err != nil {
		return nil, fmt.Errorf("%w: start adoption: %w", ErrUnavailable, err)
	}
	return run, nil
}

// StartResume starts a session's agent. ErrAlreadyResuming when that is under
// way; the running one is not touched.
func (e *Engine) StartResume(ctx context.Context, session string) error {
	_, err := e.execute(ctx, client.StartWorkflowOptions{
		ID:                                       workflows.ResumeID(session),
		TaskQueue:                                e.requests(),
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            "start of session " + session,
		TypedSearchAttributes:                    e.labels(session),
	}, workflows.TypeGuardedResume, calls.ResumeInput{
		SessionID: session, Mode: calls.ResumeNew, LaunchDeadline: e.Budgets.LaunchDeadline,
		ReadTimeout: e.Budgets.ReadTimeout, ReadRetries: e.Budgets.ReadRetries,
	})
	switch {
	case err == nil:
		return nil
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		return ErrAlreadyResuming
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
}

// StartStop stops a session's agent for a user. The same request again joins
// the running stop (B-22).
func (e *Engine) StartStop(ctx context.Context, session, instance, request string) error {
	_, err := e.execute(ctx, client.StartWorkflowOptions{
		ID:                       workflows.StopID(instance, request),
		TaskQueue:                e.requests(),
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "stop of session " + session,
		TypedSearchAttributes:    e.labels(session),
	}, workflows.TypeStopWithRetry, calls.StopInput{
		InstanceID: instance, SessionID: session, Reason: recovery.StopUser,
		ReadTimeout: e.Budgets.ReadTimeout, ReadRetries: e.Budgets.ReadRetries,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Running reports whether a session's resume is running. Only an answer of
// Temporal counts: anything else is an error.
func (e *Engine) Running(ctx context.Context, session string) (bool, error) {
	described, err := e.Client.DescribeWorkflow(ctx, workflows.ResumeID(session), "")
	var unknown *serviceerror.NotFound
	switch {
	case errors.As(err, &unknown):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}
