package fakeagent

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

// agent answers ACP calls by running scripts.
type agent struct {
	opts  options
	calls *callLog
	out   *output
	conn  *acp.AgentSideConnection

	mu       sync.Mutex
	sessions map[string]*opened
	turns    map[string]*scope
}

type opened struct {
	session *session
	cwd     string
}

// scope is the life of one turn. It begins when the prompt's line is read, so
// that a cancel that follows at once cannot overtake it.
type scope struct {
	ctx    context.Context
	cancel context.CancelFunc
}

var (
	_ acp.Agent       = (*agent)(nil)
	_ acp.AgentLoader = (*agent)(nil)
)

// received is called with every call in the order of the lines.
func (a *agent) received(call Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch call.Method {
	case acp.AgentMethodSessionPrompt:
		ctx, cancel := context.WithCancel(context.Background())
		a.turns[call.SessionID] = &scope{ctx: ctx, cancel: cancel}
	case acp.AgentMethodSessionCancel:
		if t := a.turns[call.SessionID]; t != nil {
			t.cancel()
		}
	}
}

// Initialize advertises the capabilities of the options.
func (a *agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	a.exitAt(ExitAtInitialize)
	caps := acp.AgentCapabilities{LoadSession: a.opts.load}
	if a.opts.resume {
		caps.SessionCapabilities.Resume = &acp.SessionResumeCapabilities{}
	}
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber, AgentCapabilities: caps}, nil
}

// NewSession stores a new, empty session.
func (a *agent) NewSession(_ context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	a.exitAt(ExitDuringNew)
	s, err := newSession(a.opts.state, p.Cwd)
	if err != nil {
		return acp.NewSessionResponse{}, err
	}
	a.keep(s, p.Cwd)
	return acp.NewSessionResponse{SessionId: acp.SessionId(s.id)}, nil
}

// LoadSession replays a stored session: first what was said, then the answer.
func (a *agent) LoadSession(ctx context.Context, p acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	s, entries, err := a.load(p.SessionId, p.Cwd)
	if err != nil {
		return acp.LoadSessionResponse{}, err
	}
	for i, e := range entries {
		if i == len(entries)/2 {
			a.exitAt(ExitDuringLoad)
		}
		var update acp.SessionUpdate
		switch e.Role {
		case RoleUser:
			update = acp.UpdateUserMessageText(e.Text)
		case RoleAgent:
			update = acp.UpdateAgentMessageText(updateText(e))
		default:
			continue
		}
		note := acp.SessionNotification{SessionId: acp.SessionId(s.id), Update: update}
		if err := a.conn.SessionUpdate(ctx, note); err != nil {
			return acp.LoadSessionResponse{}, err
		}
	}
	return acp.LoadSessionResponse{}, nil
}

// ResumeSession opens a stored session without a replay.
func (a *agent) ResumeSession(_ context.Context, p acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	a.exitAt(ExitDuringLoad)
	_, _, err := a.load(p.SessionId, p.Cwd)
	return acp.ResumeSessionResponse{}, err
}

func (a *agent) load(id acp.SessionId, cwd string) (*session, []Entry, error) {
	s, entries, err := loadSession(a.opts.state, string(id))
	if errors.Is(err, errUnknownSession) {
		return nil, nil, acp.NewInvalidParams(map[string]any{"error": "no such session"})
	}
	if err != nil {
		return nil, nil, err
	}
	a.keep(s, cwd)
	return s, entries, nil
}

func (a *agent) keep(s *session, cwd string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions[s.id] = &opened{session: s, cwd: cwd}
}

// Prompt runs the script in the prompt's text. A cancelled turn ends with the
// stop reason that ACP has for it.
func (a *agent) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	id := string(p.SessionId)
	a.mu.Lock()
	open, life := a.sessions[id], a.turns[id]
	a.mu.Unlock()
	if open == nil || life == nil {
		return acp.PromptResponse{}, acp.NewInvalidParams(map[string]any{"error": "session is not open"})
	}
	defer life.cancel()
	// The connection's end ends the turn as well.
	stop := context.AfterFunc(ctx, life.cancel)
	defer stop()

	text := promptText(p.Prompt)
	number, err := open.session.beginTurn(text)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	t := &turn{agent: a, session: open.session, cwd: open.cwd, number: number}
	reason, err := t.work(life.ctx, text)
	last := Entry{Role: RoleEnd, Turn: number, StopReason: string(reason)}
	if err != nil {
		last.Error = err.Error()
	}
	if recorded := open.session.record(last); recorded != nil {
		return acp.PromptResponse{}, recorded
	}
	return acp.PromptResponse{StopReason: reason}, err
}

// work runs the script to its end.
func (t *turn) work(ctx context.Context, text string) (acp.StopReason, error) {
	steps, err := parseScript(text)
	if err != nil {
		return "", acp.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	for _, s := range steps {
		err := s.run(ctx, t)
		var ended turnEnd
		switch {
		case errors.As(err, &ended):
			return ended.reason, nil
		case err != nil && ctx.Err() != nil:
			return acp.StopReasonCancelled, nil
		case err != nil:
			return "", err
		}
	}
	return acp.StopReasonEndTurn, nil
}

func promptText(blocks []acp.ContentBlock) string {
	var texts []string
	for _, b := range blocks {
		if b.Text != nil {
			texts = append(texts, b.Text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Cancel has nothing left to do: the line itself ended the turn.
func (a *agent) Cancel(context.Context, acp.CancelNotification) error { return nil }

// Authenticate accepts everyone.
func (a *agent) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, nil
}

// CloseSession is not offered.
func (a *agent) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	return acp.CloseSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionClose)
}

// ListSessions is not offered.
func (a *agent) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionList)
}

// SetSessionConfigOption is not offered.
func (a *agent) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
}

// SetSessionMode is not offered.
func (a *agent) SetSessionMode(context.Context, acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	return acp.SetSessionModeResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}

func (a *agent) exitAt(point string) {
	if a.opts.exitAt == point {
		os.Exit(a.opts.exitCode)
	}
}
