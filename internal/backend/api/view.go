package api

import (
	"context"

	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

// view joins what is durable of a session with what this boot drives.
func (s *Server) view(ctx context.Context, svc *Services, session store.Session) (userapi.Session, error) {
	out := userapi.Session{
		ID: session.ID, TaskID: session.TaskID, Title: session.TaskTitle, TaskState: session.TaskState,
		State: session.State, ProfileID: session.ProfileID, Passthrough: session.Passthrough, Cause: remarkable(session.Cause),
		Position: session.Position, CreatedAt: session.CreatedAt, UpdatedAt: session.UpdatedAt,
	}
	turn, err := svc.Store.LastTurn(ctx, svc.Installation, session.ID)
	if err != nil {
		return userapi.Session{}, err
	}
	if turn != nil {
		shown := viewTurn(*turn)
		out.Turn = &shown
	}
	e, published := tracked(svc, session.ID)
	if !published {
		return out, nil
	}
	out.Agent = &userapi.Agent{InstanceID: e.InstanceID, PID: e.PID, Generation: e.Generation}
	out.Pending, err = s.pending.of(ctx, svc, session, e.InstanceID)
	return out, err
}

// tracked returns the session's execution, once it is published.
func tracked(svc *Services, session string) (execution.Execution, bool) {
	e, ok := svc.Executions.Get(session)
	return e, ok && !svc.Executions.Guarded(session)
}

func viewTurn(t store.Turn) userapi.Turn {
	return userapi.Turn{Key: t.Key, TurnID: t.TurnID, State: t.State, StopReason: t.StopReason, Error: t.Error}
}

// remarkable keeps the causes of a session's ordinary life out of the view.
func remarkable(cause string) string {
	switch cause {
	case store.CauseStart, store.CauseStarted, store.CausePrompt, store.CauseTurnEnded, store.CauseRetracked:
		return ""
	default:
		return cause
	}
}
