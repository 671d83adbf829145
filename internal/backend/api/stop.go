package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/kandev/recovery/internal/credential"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

const causeUserStop = "stopped by the user"

// stop writes the user's wish down before anything acts on it (W-7), and joins a
// stop that is under way (B-22). A session without an agent is stopped already.
func (s *Server) stop(w http.ResponseWriter, r *http.Request, svc *Services) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), storeTimeout+engineTimeout)
	defer cancel()
	session := r.PathValue("id")
	record, err := s.requestStop(ctx, svc, session)
	if errors.Is(err, store.ErrNoRecord) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err != nil {
		return err
	}
	engine := svc.host(record.Passthrough).Engine
	if err := engine.StartStop(ctx, session, record.ExecutionID, record.StopRequestID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// requestStop returns the record of the agent that is to be stopped, or
// store.ErrNoRecord when there is none.
func (s *Server) requestStop(ctx context.Context, svc *Services, session string) (store.InventoryRecord, error) {
	request := store.StopRequest{Installation: svc.Installation, SessionID: session, RequestID: credential.NewID()}
	record, err := svc.Store.RequestStop(ctx, request)
	if !errors.Is(err, store.ErrNoRecord) {
		return record, err
	}
	begun, withdrawErr := s.withdraw(ctx, svc, session)
	if withdrawErr != nil {
		return record, withdrawErr
	}
	if !begun {
		return record, err
	}
	return svc.Store.RequestStop(ctx, request)
}

// withdraw cancels a session whose start has not begun. begun reports that it has
// begun meanwhile, so that there is an agent to stop.
func (s *Server) withdraw(ctx context.Context, svc *Services, session string) (begun bool, err error) {
	_, err = svc.Store.Transition(ctx, store.Change{
		Installation: svc.Installation, SessionID: session, BootID: svc.BootID, Cause: causeUserStop,
		From: []recovery.SessionState{recovery.StateCreated}, To: recovery.StateCancelled,
	})
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return conflict.Current.HasAgent(), nil
	}
	return false, err
}
