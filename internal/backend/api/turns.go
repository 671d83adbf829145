package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/crashpoint"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

// agentTimeout bounds one call to the control server, although the user may be
// gone.
const agentTimeout = 15 * time.Second

// agent is a session's published agent and the way to it.
type agent struct {
	execution.Execution
	client *client.Client
	server owner.Server
	host   Host
}

func (s *Server) agentOf(ctx context.Context, svc *Services, session string) (agent, error) {
	stored, err := svc.Store.GetSession(ctx, svc.Installation, session)
	if err != nil {
		return agent{}, err
	}
	if svc.Executions.Guarded(session) {
		if stored, err = held(ctx, svc, stored); err != nil {
			return agent{}, err
		}
	}
	e, published := tracked(svc, session)
	if !published {
		return agent{}, noAgent(stored.State)
	}
	host := svc.host(e.Passthrough)
	c, server, err := host.Server.Client()
	if err != nil {
		return agent{}, err
	}
	if server.Identity != e.ServerIdentity {
		return agent{}, noAgent(stored.State)
	}
	return agent{Execution: e, client: c, server: server, host: host}, nil
}

// held is for a session that recovery holds. The hold is judged anew with every
// request: once the agent is proven dead, the session is as its repair left it
// (S-003.6).
func held(ctx context.Context, svc *Services, session store.Session) (store.Session, error) {
	refusal := svc.Executions.AdmitLaunch(session.ID, session.Passthrough)
	if refusal == nil {
		return session, nil
	}
	if !refusal.Retryable() {
		return session, refusal
	}
	settled, err := svc.Liveness.Settle(ctx, session.ID)
	if err != nil {
		return session, err
	}
	if !settled {
		return session, refusal
	}
	return svc.Store.GetSession(ctx, svc.Installation, session.ID)
}

func noAgent(state recovery.SessionState) *userapi.Error {
	refusal := &userapi.Error{
		Code: userapi.CodeNoAgent, Message: "the session has no agent now; it is " + string(state),
		Remedy: "start a session",
	}
	if state == recovery.StateCreated || state == recovery.StateStarting {
		refusal.Remedy, refusal.Retryable = "wait until its agent is ready", true
	}
	return refusal
}

// call runs one operation on the agent, also when the user goes away meanwhile.
// The first operation that a newer credential defeats ends the use of the server
// (O-002.3).
func (s *Server) call(ctx context.Context, a agent, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), agentTimeout)
	defer cancel()
	err := do(ctx)
	if owner.Rejected(err) {
		a.host.Server.ReportSuperseded(a.server)
	}
	return err
}

func (s *Server) prompt(w http.ResponseWriter, r *http.Request, svc *Services) error {
	var req userapi.Prompt
	if err := decode(w, r, &req); err != nil {
		return err
	}
	session, key := r.PathValue("id"), r.PathValue("key")
	if err := checkName("the prompt's key", key); err != nil {
		return err
	}
	if req.Text == "" {
		return invalid("the prompt has no text", "give one")
	}
	a, err := s.agentOf(r.Context(), svc, session)
	if err != nil {
		return err
	}
	blocks, err := json.Marshal([]textBlock{{Type: "text", Text: req.Text}})
	if err != nil {
		return err
	}
	turn, _, err := svc.Store.RecordTurn(r.Context(), svc.Installation, session, key, blocks, svc.BootID)
	if err != nil {
		return err
	}
	if !sameText(turn.Blocks, req.Text) {
		return &userapi.Error{
			Code: userapi.CodeConflict, Message: "this key was used for another prompt", Remedy: "choose a new key",
		}
	}
	if turn.State == recovery.TurnRecorded {
		crashpoint.Hit("api.prompt_recorded")
		if turn, err = s.send(r.Context(), svc, a, turn); err != nil {
			return err
		}
	}
	s.answer(w, r, http.StatusOK, viewTurn(turn))
	return nil
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func sameText(blocks json.RawMessage, text string) bool {
	var stored []textBlock
	return json.Unmarshal(blocks, &stored) == nil && len(stored) == 1 && stored[0].Text == text
}

// send gives a recorded turn to the agent. Whether it arrived may stay open: then
// the turn stays recorded, and repeating the request with its key is safe (B-17).
func (s *Server) send(ctx context.Context, svc *Services, a agent, turn store.Turn) (store.Turn, error) {
	var request wire.PromptRequest
	if err := json.Unmarshal(turn.Blocks, &request.Blocks); err != nil {
		return turn, err
	}
	var sent wire.Turn
	err := s.call(ctx, a, func(ctx context.Context) (err error) {
		sent, err = a.client.Prompt(ctx, a.InstanceID, turn.Key, request)
		return err
	})
	if err != nil {
		if refusedPrompt(err) {
			return turn, s.failTurn(ctx, svc, a, turn, err)
		}
		return turn, err
	}
	crashpoint.Hit("api.prompt_sent")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := svc.Store.MarkTurnSent(ctx, svc.Installation, a.SessionID, turn.Key, sent.TurnID); err != nil {
		return turn, err
	}
	turn, _, err = svc.Store.RecordTurn(ctx, svc.Installation, a.SessionID, turn.Key, turn.Blocks, svc.BootID)
	return turn, err
}

// refusedPrompt reports whether the agent certainly did not take the prompt and
// never will.
func refusedPrompt(err error) bool {
	var refused *wire.Error
	if !errors.As(err, &refused) || owner.Rejected(err) {
		return false
	}
	return refused.Code != wire.CodeInternal && refused.Code != wire.CodeShuttingDown
}

// failTurn ends a turn that the agent refused, so that the session takes another,
// and returns the refusal.
func (s *Server) failTurn(ctx context.Context, svc *Services, a agent, turn store.Turn, refused error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var why *wire.Error
	errors.As(refused, &why)
	_, _, err := svc.Store.ApplyOutcome(ctx, svc.Installation, a.SessionID, store.Outcome{
		Key: turn.Key, Error: string(why.Code), EndedAt: time.Now(),
	}, svc.BootID)
	if err != nil {
		s.cfg.Logger.Error("a refused prompt stays recorded", zap.String("session_id", a.SessionID), zap.Error(err))
	}
	return refused
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request, svc *Services) error {
	a, err := s.agentOf(r.Context(), svc, r.PathValue("id"))
	if err != nil {
		return err
	}
	err = s.call(r.Context(), a, func(ctx context.Context) error { return a.client.Cancel(ctx, a.InstanceID) })
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) answerPermission(w http.ResponseWriter, r *http.Request, svc *Services) error {
	var answer userapi.PermissionAnswer
	if err := decode(w, r, &answer); err != nil {
		return err
	}
	if answer.Cancelled == (answer.OptionID != "") {
		return invalid("the answer is neither one option nor a cancellation", "give option_id or cancelled")
	}
	a, err := s.agentOf(r.Context(), svc, r.PathValue("id"))
	if err != nil {
		return err
	}
	err = s.call(r.Context(), a, func(ctx context.Context) error {
		return a.client.AnswerPermission(ctx, a.InstanceID, r.PathValue("request"), wire.PermissionAnswer(answer))
	})
	if errors.Is(err, &wire.Error{Code: wire.CodeNotFound}) {
		return &userapi.Error{
			Code: userapi.CodeNotFound, Message: "there is no such permission request", Remedy: "look at the session",
		}
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
