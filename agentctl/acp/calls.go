package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	sdk "github.com/coder/acp-go-sdk"
)

// How this client introduces itself.
const (
	clientName    = "kandev-agentctl"
	clientVersion = "1"
)

const codeInternal = -32603 // JSON-RPC

// Capabilities are the ways of reopening a conversation that an agent offers.
type Capabilities struct {
	LoadSession   bool
	ResumeSession bool
}

// Initialize negotiates the protocol. It offers the agent neither files nor
// terminals. Errors: those of every call, that is ctx's, ErrExited, ErrProtocol
// and *CallError.
func (a *Agent) Initialize(ctx context.Context) (Capabilities, error) {
	res, err := call[sdk.InitializeResponse](ctx, a, sdk.AgentMethodInitialize, sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo:      &sdk.Implementation{Name: clientName, Version: clientVersion},
	})
	if err != nil {
		return Capabilities{}, err
	}
	if res.ProtocolVersion != sdk.ProtocolVersionNumber {
		return Capabilities{}, fmt.Errorf("%w: it answered with version %d", ErrProtocol, res.ProtocolVersion)
	}
	caps := res.AgentCapabilities
	return Capabilities{LoadSession: caps.LoadSession, ResumeSession: caps.SessionCapabilities.Resume != nil}, nil
}

// NewSession opens a new conversation in the absolute directory cwd and returns
// the provider's id of it.
func (a *Agent) NewSession(ctx context.Context, cwd string) (string, error) {
	res, err := call[sdk.NewSessionResponse](ctx, a, sdk.AgentMethodSessionNew, sdk.NewSessionRequest{
		Cwd: cwd, McpServers: []sdk.McpServer{},
	})
	if err != nil {
		return "", err
	}
	if res.SessionId == "" {
		return "", fmt.Errorf("%w: a new session has no id", ErrProtocol)
	}
	a.opened(string(res.SessionId))
	return string(res.SessionId), nil
}

// LoadSession reopens a conversation; the history that the agent replays
// meanwhile is not recorded (B-18). It sends one request and never repeats it.
func (a *Agent) LoadSession(ctx context.Context, cwd, id string) error {
	_, err := call[sdk.LoadSessionResponse](ctx, a, sdk.AgentMethodSessionLoad, sdk.LoadSessionRequest{
		Cwd: cwd, McpServers: []sdk.McpServer{}, SessionId: sdk.SessionId(id),
	})
	return a.reopened(id, err)
}

// ResumeSession reopens a conversation without a replay; one that the agent
// sends all the same is not recorded either.
func (a *Agent) ResumeSession(ctx context.Context, cwd, id string) error {
	_, err := call[sdk.ResumeSessionResponse](ctx, a, sdk.AgentMethodSessionResume, sdk.ResumeSessionRequest{
		Cwd: cwd, SessionId: sdk.SessionId(id),
	})
	return a.reopened(id, err)
}

func (a *Agent) reopened(id string, err error) error {
	if err == nil {
		a.opened(id)
	}
	return err
}

// opened ends the SDK, which has no further call to make.
func (a *Agent) opened(sessionID string) {
	a.talk.opened(sessionID)
	a.toSDK.CloseWithError(io.EOF)
}

func call[T any](ctx context.Context, a *Agent, method string, params any) (T, error) {
	res, err := sdk.SendRequest[T](a.conn, ctx, method, params)
	if err == nil {
		return res, nil
	}
	// The SDK wraps a done ctx and its own failures in errors of the same type
	// as the agent's answers.
	if ctx.Err() != nil {
		return res, fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
	var answer *sdk.RequestError
	if !errors.As(err, &answer) {
		return res, fmt.Errorf("%s: %w", method, err)
	}
	if answer.Code == codeInternal && a.ended() {
		return res, fmt.Errorf("%s: %w", method, ErrExited)
	}
	return res, &CallError{Method: method, Code: answer.Code, Message: answer.Message}
}

func (a *Agent) ended() bool {
	select {
	case <-a.conn.Done():
		return true
	default:
		return false
	}
}

// outgoing is the SDK's way to the agent. It learns from the requests that pass
// when a replay may begin.
type outgoing struct {
	stdin *stdinQueue
	talk  *conversation
}

func (o outgoing) Write(p []byte) (int, error) {
	var m message
	if err := json.Unmarshal(p, &m); err != nil {
		return 0, err
	}
	if m.Method == sdk.AgentMethodSessionLoad || m.Method == sdk.AgentMethodSessionResume {
		o.talk.replayUntil(m.ID)
	}
	if err := o.stdin.push(append([]byte(nil), p...), nil); err != nil {
		return 0, err
	}
	return len(p), nil
}
