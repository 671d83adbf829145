package server

import (
	"context"
	"net/http"
	"time"

	"github.com/kandev/recovery/agentctl/wire"
)

// maxGrace bounds how long a stop may leave an agent to end by itself.
const maxGrace = 10 * time.Minute

func (s *Server) list(context.Context, *http.Request, []byte) (any, error) {
	instances := s.cfg.Instances.List()
	if instances == nil {
		instances = []wire.Instance{}
	}
	return wire.InstanceList{Instances: instances}, nil
}

func (s *Server) get(_ context.Context, r *http.Request, _ []byte) (any, error) {
	return s.cfg.Instances.Get(r.PathValue("id"))
}

func (s *Server) create(_ context.Context, r *http.Request, body []byte) (any, error) {
	request, err := decode[wire.CreateRequest](body)
	if err != nil {
		return nil, err
	}
	return s.cfg.Instances.Create(r.PathValue("id"), request)
}

func (s *Server) stop(ctx context.Context, r *http.Request, body []byte) (any, error) {
	request, err := decode[wire.StopRequest](body)
	if err != nil {
		return nil, err
	}
	if request.GraceMS < 0 || request.GraceMS > maxGrace.Milliseconds() {
		return nil, badRequest("grace_ms is outside 0 to 600000")
	}
	grace := time.Duration(request.GraceMS) * time.Millisecond
	absent, err := s.cfg.Instances.Stop(ctx, r.PathValue("id"), grace)
	if err != nil {
		return nil, err
	}
	return wire.StopResponse{Absent: absent}, nil
}

func (s *Server) prompt(_ context.Context, r *http.Request, body []byte) (any, error) {
	request, err := decode[wire.PromptRequest](body)
	if err != nil {
		return nil, err
	}
	return s.cfg.Instances.Prompt(r.PathValue("id"), r.PathValue("key"), request)
}

func (s *Server) cancel(_ context.Context, r *http.Request, _ []byte) (any, error) {
	return empty{}, s.cfg.Instances.Cancel(r.PathValue("id"))
}

func (s *Server) answerPermission(_ context.Context, r *http.Request, body []byte) (any, error) {
	answer, err := decode[wire.PermissionAnswer](body)
	if err != nil {
		return nil, err
	}
	return empty{}, s.cfg.Instances.AnswerPermission(r.PathValue("id"), r.PathValue("rid"), answer)
}

func (s *Server) startup(_ context.Context, r *http.Request, _ []byte) (any, error) {
	return s.cfg.Instances.Startup(r.PathValue("id"))
}

func (s *Server) turnOutcome(_ context.Context, r *http.Request, _ []byte) (any, error) {
	return s.cfg.Instances.TurnOutcome(r.PathValue("id"))
}

func (s *Server) ackTurnOutcome(_ context.Context, r *http.Request, body []byte) (any, error) {
	request, err := decode[wire.AckOutcomeRequest](body)
	if err != nil {
		return nil, err
	}
	return empty{}, s.cfg.Instances.AckTurnOutcome(r.PathValue("id"), request.TurnID)
}
