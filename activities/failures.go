package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/store"
)

// failure turns an error of a peer into a typed failure whose text was written
// here: peers' own words may hold addresses and paths, and histories must not
// (W-4).
func failure(err error) error {
	var answer *wire.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrSuperseded):
		return temporal.NewNonRetryableApplicationError("a newer credential drives the control server", calls.FailureSuperseded, nil)
	case errors.As(err, &answer):
		return refused(answer)
	case errors.Is(err, execution.ErrFenced):
		return temporal.NewNonRetryableApplicationError("the recovery pass is over", calls.FailureFenced, nil)
	case errors.Is(err, owner.ErrNoServer):
		return temporal.NewApplicationError("no control server is in use yet", calls.FailureUnanswered, nil)
	case isConflict(err):
		return temporal.NewNonRetryableApplicationError("the session is in another state", calls.FailureConflict, nil)
	case errors.Is(err, store.ErrUnavailable):
		return temporal.NewApplicationError("Postgres did not answer", calls.FailureStoreLost, nil)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, client.ErrNoAnswer), errors.Is(err, client.ErrRefused), errors.Is(err, client.ErrIdentity):
		return temporal.NewApplicationError("the control server did not answer", calls.FailureUnanswered, nil)
	default:
		return temporal.NewApplicationError("an unexpected error; the backend's log has it", calls.FailureUnanswered, nil)
	}
}

func isConflict(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExecutionReplaced) || errors.Is(err, store.ErrNoSession)
}

// refused classifies an answer of the control server. Its messages are made to
// be shown: they hold no path and no secret.
func refused(answer *wire.Error) error {
	switch answer.Code {
	case wire.CodeInvalidCommand, wire.CodeInvalidWorkspace, wire.CodeBadRequest, wire.CodeTooLarge, wire.CodeInstanceExists, wire.CodeStopped:
		return temporal.NewNonRetryableApplicationError(answer.Message, calls.FailureAgentStart, nil)
	case wire.CodeStopFailed:
		return temporal.NewApplicationError("a process of the agent survived the stop", calls.FailureStop, nil)
	default:
		return temporal.NewApplicationError("the control server refused: "+string(answer.Code), calls.FailureUnanswered, nil)
	}
}
