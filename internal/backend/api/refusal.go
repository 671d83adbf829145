package api

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

// refusal says an error in the words of the interface. What it does not know is
// logged and told to the user as internal only: errors may name paths.
func (s *Server) refusal(r *http.Request, err error) *userapi.Error {
	var refusal *userapi.Error
	var launch *execution.Refusal
	var agent *wire.Error
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &launch):
		s.cfg.Counters.LaunchRefused(r.PathValue("id"), launch.LaunchRefusal)
		return launchRefusal(launch)
	case errors.As(err, &agent):
		return agentRefusal(agent)
	}
	if refusal := storeRefusal(err); refusal != nil {
		return refusal
	}
	if refusal := peerRefusal(err); refusal != nil {
		return refusal
	}
	s.cfg.Logger.Error("a request failed", zap.String("route", r.Pattern), zap.Error(err))
	return &userapi.Error{Code: userapi.CodeInternal, Message: "internal error", Remedy: "look into the backend's log"}
}

func launchRefusal(r *execution.Refusal) *userapi.Error {
	switch r.LaunchRefusal {
	case recovery.LaunchRefusedUnstopped:
		return &userapi.Error{
			Code:    userapi.CodeUnstopped,
			Message: "an agent of this session could not be stopped (instance " + r.InstanceID + ")",
			Remedy:  "end that agent's process, then restart the backend",
		}
	case recovery.LaunchRefusedTracked:
		return &userapi.Error{
			Code: userapi.CodeConflict, Message: "the session has an agent already (instance " + r.InstanceID + ")",
			Remedy: "stop it before starting another",
		}
	default:
		return &userapi.Error{
			Code: userapi.CodeRecovering, Retryable: true,
			Message: "recovery has not settled this session yet", Remedy: "try again in a moment",
		}
	}
}

func storeRefusal(err error) *userapi.Error {
	var conflict *store.ConflictError
	switch {
	case errors.As(err, &conflict):
		return &userapi.Error{
			Code: userapi.CodeConflict, Message: "the session is " + string(conflict.Current) + ", which does not allow this",
			Remedy: "look at the session",
		}
	case errors.Is(err, store.ErrNoSession):
		return &userapi.Error{Code: userapi.CodeNotFound, Message: "there is no such session", Remedy: "list the sessions"}
	case errors.Is(err, store.ErrTurnOpen):
		return &userapi.Error{
			Code: userapi.CodeConflict, Message: "another turn of the session is open",
			Remedy: "wait for its end, or cancel it",
		}
	case errors.Is(err, store.ErrInvalidText):
		return invalid("a text holds a NUL character or is not UTF-8", "remove it")
	case errors.Is(err, store.ErrUnavailable):
		return unavailable("the database did not answer")
	default:
		return nil
	}
}

func peerRefusal(err error) *userapi.Error {
	switch {
	case errors.Is(err, owner.ErrNoServer):
		return unavailable("no control server is in use")
	case errors.Is(err, client.ErrRefused), errors.Is(err, client.ErrNoAnswer), errors.Is(err, client.ErrIdentity):
		return unavailable("the control server did not answer")
	case errors.Is(err, ErrEngineUnavailable):
		return unavailable("the workflow engine did not answer")
	case errors.Is(err, ErrAlreadyResuming):
		return &userapi.Error{
			Code: userapi.CodeAlreadyResuming, Message: "the session's agent is being started already",
			Remedy: "wait until it is ready",
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("the request was not finished in time")
	default:
		return nil
	}
}

// agentRefusal says what a control server refused. Its messages name no path.
func agentRefusal(e *wire.Error) *userapi.Error {
	out := &userapi.Error{Message: e.Message, Remedy: e.Remedy}
	switch e.Code {
	case wire.CodeTurnOpen, wire.CodeNoTurn, wire.CodeSettled, wire.CodeInstanceExists:
		out.Code = userapi.CodeConflict
	case wire.CodeNotFound, wire.CodeNotReady, wire.CodeStopped:
		out.Code = userapi.CodeNoAgent
	case wire.CodeTooLarge, wire.CodeBadRequest, wire.CodeInvalidCommand, wire.CodeInvalidWorkspace:
		out.Code = userapi.CodeInvalid
	case wire.CodeSuperseded, wire.CodeUnauthenticated:
		out = unavailable("another backend took over the control server")
		out.Remedy = "use that backend, or restart this one"
	case wire.CodeOutsideWorkspace:
		out.Code = userapi.CodeOutsideWorkspace
	case wire.CodeFileDenied:
		out.Code = userapi.CodeDenied
	case wire.CodeNoSuchFile:
		out.Code = userapi.CodeNotFound
	case wire.CodeFileChanged:
		out.Code, out.Remedy = userapi.CodeConflict, "read the file again"
	case wire.CodeWrongKind, wire.CodeNoRepository:
		out.Code = userapi.CodeInvalid
	case wire.CodeGitFailed:
		out = unavailable(e.Message)
	case wire.CodeShuttingDown:
		out = unavailable("the control server is ending")
	default:
		out = unavailable("the control server could not do it")
	}
	return out
}
