package controltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/events"
	"github.com/kandev/recovery/agentctl/instance"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/agentctl/workspace"
)

// zapLevel keeps the control server's own log out of tests that pass.
const zapLevel = zap.ErrorLevel

// Agents are the instances of a Server.
type Agents struct {
	mu     sync.Mutex
	agents map[string]*Agent
}

// Agent is one instance: a real event log, and what its agent was asked to do.
type Agent struct {
	Log *events.Log

	mu       sync.Mutex
	prompts  []string // keys, in order
	turns    map[string]string
	answered map[string]wire.PermissionAnswer
	cancels  int
	refuse   *wire.Error
	files    *workspace.Workspace
}

// Add makes an instance that keeps at most limit events while detached.
func (a *Agents) Add(id string, limit int) *Agent {
	agent := &Agent{
		Log:   events.NewLog(events.Limits{Count: limit, Bytes: 16 << 20}, events.NewBudget(64<<20), time.Now),
		turns: make(map[string]string), answered: make(map[string]wire.PermissionAnswer),
		files: &workspace.Workspace{},
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.agents[id] = agent
	return agent
}

// Remove makes the server forget the instance.
func (a *Agents) Remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.agents, id)
}

func (a *Agents) find(id string) (*Agent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if agent, ok := a.agents[id]; ok {
		return agent, nil
	}
	return nil, &wire.Error{Code: wire.CodeNotFound, Message: "no such instance"}
}

// Append adds one event with the payload as JSON.
func (g *Agent) Append(t testing.TB, kind wire.EventKind, turn string, payload any) int64 {
	t.Helper()
	raw, err := json.Marshal(payload)
	require.NoError(t, err)
	seq, err := g.Log.Append(t.Context(), kind, turn, raw)
	require.NoError(t, err)
	return seq
}

// Refuse makes prompts, cancellations and answers fail with the error; nil ends
// that.
func (g *Agent) Refuse(err *wire.Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = err
}

// Serve makes the roots what can be reached of the instance's files; without it
// that is nothing.
func (g *Agent) Serve(t testing.TB, roots ...string) {
	t.Helper()
	files, err := workspace.Open(roots)
	require.NoError(t, err)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.files = files
}

// Prompts are the keys of the prompts that reached the agent, in order.
func (g *Agent) Prompts() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.prompts...)
}

// Cancels counts the cancellations that reached the agent.
func (g *Agent) Cancels() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cancels
}

// Answers are the permission answers that reached the agent.
func (g *Agent) Answers() map[string]wire.PermissionAnswer {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[string]wire.PermissionAnswer, len(g.answered))
	for id, answer := range g.answered {
		out[id] = answer
	}
	return out
}

func (g *Agent) refusal() error {
	if g.refuse == nil {
		return nil
	}
	return g.refuse
}

// Prompt implements server.Instances; it is idempotent by key.
func (a *Agents) Prompt(id, key string, _ wire.PromptRequest) (wire.Turn, error) {
	g, err := a.find(id)
	if err != nil {
		return wire.Turn{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refusal(); err != nil {
		return wire.Turn{}, err
	}
	if turn, ok := g.turns[key]; ok {
		return wire.Turn{TurnID: turn, Open: true}, nil
	}
	g.turns[key] = fmt.Sprintf("t-%s-%d", id, len(g.turns)+1)
	g.prompts = append(g.prompts, key)
	return wire.Turn{TurnID: g.turns[key], Open: true}, nil
}

// Cancel implements server.Instances.
func (a *Agents) Cancel(id string) error {
	g, err := a.find(id)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refusal(); err != nil {
		return err
	}
	g.cancels++
	return nil
}

// AnswerPermission implements server.Instances.
func (a *Agents) AnswerPermission(id, request string, answer wire.PermissionAnswer) error {
	g, err := a.find(id)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refusal(); err != nil {
		return err
	}
	g.answered[request] = answer
	return nil
}

// Workspace implements server.Instances.
func (a *Agents) Workspace(id string) (*workspace.Workspace, error) {
	g, err := a.find(id)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.files, nil
}

type attachment struct {
	*events.Stream
	first, next int64
}

func (a attachment) Bounds() (first, next int64) { return a.first, a.next }

// Attach implements server.Instances.
func (a *Agents) Attach(id string, after int64) (instance.Stream, error) {
	g, err := a.find(id)
	if err != nil {
		return nil, err
	}
	stream, err := g.Log.Attach(after)
	if errors.Is(err, events.ErrClosed) {
		return nil, &wire.Error{Code: wire.CodeStopped, Message: "the instance was stopped"}
	}
	if err != nil {
		return nil, err
	}
	first, next := g.Log.Bounds()
	return attachment{Stream: stream, first: first, next: next}, nil
}

// StopAll implements server.Instances.
func (a *Agents) StopAll(context.Context, time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, agent := range a.agents {
		agent.Log.Close()
	}
	return nil
}

// List implements server.Instances.
func (a *Agents) List() []wire.Instance { return []wire.Instance{} }

var errNotOffered = &wire.Error{Code: wire.CodeInternal, Message: "not offered by this test's server"}

// Create implements server.Instances.
func (a *Agents) Create(string, wire.CreateRequest) (wire.Instance, error) {
	return wire.Instance{}, errNotOffered
}

// Get implements server.Instances.
func (a *Agents) Get(string) (wire.InstanceDetail, error) {
	return wire.InstanceDetail{}, errNotOffered
}

// Stop implements server.Instances.
func (a *Agents) Stop(context.Context, string, time.Duration) (bool, error) {
	return false, errNotOffered
}

// Startup implements server.Instances.
func (a *Agents) Startup(string) (wire.Startup, error) { return wire.Startup{}, errNotOffered }

// TurnOutcome implements server.Instances.
func (a *Agents) TurnOutcome(string) (wire.KeptOutcome, error) {
	return wire.KeptOutcome{}, errNotOffered
}

// AckTurnOutcome implements server.Instances.
func (a *Agents) AckTurnOutcome(string, string) error { return errNotOffered }
