package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

const (
	maxTitle = 500 // bytes
	// engineTimeout bounds the start of a workflow, and storeTimeout what has to
	// be written although the user may be gone.
	engineTimeout = 10 * time.Second
	storeTimeout  = 10 * time.Second
)

// causeNotStarted is the cause of a session whose agent nobody was asked to start.
const causeNotStarted = "the workflow engine did not answer"

func (s *Server) createSession(w http.ResponseWriter, r *http.Request, svc *Services) error {
	var req userapi.CreateSession
	if err := decode(w, r, &req); err != nil {
		return err
	}
	wanted, err := s.newSession(r.Context(), svc, req)
	if err != nil {
		return err
	}
	if refusal := svc.Executions.AdmitLaunch("", req.Passthrough); refusal != nil {
		return refusal
	}
	session, err := svc.Store.CreateSession(r.Context(), wanted)
	if err != nil {
		return err
	}
	if err := s.startAgent(r.Context(), svc, session); err != nil {
		return err
	}
	if session, err = svc.Store.GetSession(r.Context(), svc.Installation, session.ID); err != nil {
		return err
	}
	return s.answerSession(w, r, svc, http.StatusCreated, session)
}

func (s *Server) newSession(ctx context.Context, svc *Services, req userapi.CreateSession) (store.NewSession, error) {
	if req.TaskID != "" {
		if err := checkName("the task's id", req.TaskID); err != nil {
			return store.NewSession{}, err
		}
	}
	if len(req.Title) > maxTitle {
		return store.NewSession{}, invalid("the title is over 500 bytes", "shorten it")
	}
	workspace, roots, err := directories(req.Workspace, req.Roots)
	if err != nil {
		return store.NewSession{}, err
	}
	_, err = svc.Store.GetProfile(ctx, svc.Installation, req.ProfileID)
	if errors.Is(err, store.ErrNoProfile) {
		return store.NewSession{}, invalid("there is no such profile", "create the profile, or name one that exists")
	}
	if err != nil {
		return store.NewSession{}, err
	}
	return store.NewSession{
		Installation: svc.Installation, TaskID: req.TaskID, Title: req.Title, ProfileID: req.ProfileID,
		Workspace: workspace, Roots: roots, Passthrough: req.Passthrough,
	}, nil
}

// startAgent asks for the agent of a new session. If the engine did not answer, the
// compare-and-set decides what became of it: either the start has begun, or the
// session is failed, and a start that comes later finds it so and does nothing.
func (s *Server) startAgent(ctx context.Context, svc *Services, session store.Session) error {
	ctx = context.WithoutCancel(ctx)
	asking, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	err := svc.host(session.Passthrough).Engine.StartResume(asking, session.ID)
	if err == nil {
		return nil
	}
	s.cfg.Logger.Warn("the start of a session could not be requested", zap.String("session_id", session.ID), zap.Error(err))
	writing, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	_, failErr := svc.Store.Transition(writing, store.Change{
		Installation: svc.Installation, SessionID: session.ID, BootID: svc.BootID, Cause: causeNotStarted,
		From: []recovery.SessionState{recovery.StateCreated}, To: recovery.StateFailed,
	})
	switch {
	case errors.Is(failErr, store.ErrConflict):
		return nil
	case failErr != nil:
		return failErr
	default:
		return err
	}
}

func (s *Server) listSessions(w http.ResponseWriter, r *http.Request, svc *Services) error {
	sessions, err := svc.Store.ListSessions(r.Context(), svc.Installation)
	if err != nil {
		return err
	}
	views := make([]userapi.Session, 0, len(sessions))
	for _, session := range sessions {
		view, err := s.view(r.Context(), svc, session)
		if err != nil {
			return err
		}
		views = append(views, view)
	}
	s.answer(w, r, http.StatusOK, map[string]any{"sessions": views})
	return nil
}

func (s *Server) getSession(w http.ResponseWriter, r *http.Request, svc *Services) error {
	session, err := svc.Store.GetSession(r.Context(), svc.Installation, r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.answerSession(w, r, svc, http.StatusOK, session)
}

func (s *Server) answerSession(w http.ResponseWriter, r *http.Request, svc *Services, status int, session store.Session) error {
	view, err := s.view(r.Context(), svc, session)
	if err != nil {
		return err
	}
	s.answer(w, r, status, view)
	return nil
}

func (s *Server) transitions(w http.ResponseWriter, r *http.Request, svc *Services) error {
	session, err := svc.Store.GetSession(r.Context(), svc.Installation, r.PathValue("id"))
	if err != nil {
		return err
	}
	rows, err := svc.Store.Transitions(r.Context(), svc.Installation, session.ID)
	if err != nil {
		return err
	}
	out := make([]userapi.Transition, 0, len(rows))
	for _, row := range rows {
		out = append(out, userapi.Transition{From: row.From, To: row.To, Cause: row.Cause, BootID: row.BootID, At: row.At})
	}
	s.answer(w, r, http.StatusOK, map[string]any{"transitions": out})
	return nil
}
