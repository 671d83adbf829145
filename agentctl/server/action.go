package server

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/ownership"
	"github.com/kandev/recovery/agentctl/wire"
)

// action is what a route does once its request is complete and allowed. ctx
// ends with the request and with its credential.
type action func(ctx context.Context, r *http.Request, body []byte) (any, error)

// empty is the answer of actions that have nothing to say.
type empty struct{}

// driving admits requests of the newest credential.
func (s *Server) driving(do action) http.HandlerFunc { return s.admitted(maxSmallBody, do) }

// carrying is driving for the routes whose bodies carry a user's content.
func (s *Server) carrying(do action) http.HandlerFunc { return s.admitted(wire.MaxRequestBytes, do) }

// admitted reads the body before the admission and writes the answer after it,
// so that a slow peer holds up no rotation.
func (s *Server) admitted(limit int64, do action) http.HandlerFunc {
	return s.serve(limit, func(ctx context.Context, r *http.Request, body []byte) (any, error) {
		admission, err := s.cfg.Authority.Admit(bearer(r), ownership.Request)
		if err != nil {
			return nil, err
		}
		defer admission.Release()
		ctx, cancel := admission.Bind(ctx)
		defer cancel()
		return do(ctx, r, body)
	}, s.cfg.Authority.Check)
}

// open serves requests that the action judges by itself.
func (s *Server) open(do action, checks ...func(token string) error) http.HandlerFunc {
	return s.serve(maxSmallBody, do, checks...)
}

// serve reads a body of at most limit bytes. Each check sees the credential
// before that.
func (s *Server) serve(limit int64, do action, checks ...func(token string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := func() (any, error) {
			for _, check := range checks {
				if err := check(bearer(r)); err != nil {
					return nil, err
				}
			}
			body, err := readBody(w, r, limit)
			if err != nil {
				return nil, err
			}
			return do(r.Context(), r, body)
		}()
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		s.answers.ok(w, answer)
	}
}

// refuse answers with the error and logs what an operator has to know about.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *wire.Error
	switch {
	case !errors.As(err, &refusal):
		s.cfg.Logger.Error("request failed", zap.String("route", r.Pattern), zap.Error(err))
	case refusal.Code == wire.CodeSuperseded:
		s.cfg.Logger.Warn("superseded credential rejected", zap.String("route", r.Pattern))
	}
	s.answers.refuse(w, err)
}
