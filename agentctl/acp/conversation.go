package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// firstPromptID keeps the request ids of prompts apart from those of the SDK,
// which count from 1, and within 32 bits, which some agents expect.
const firstPromptID = 1 << 30

// turn is a prompt that has no response yet.
type turn struct {
	id, key   string
	requestID string // JSON-RPC
	cancelled bool
}

// conversation is what both sides of the pipe need to know: the open turn, the
// outstanding permission requests, the replay in progress.
type conversation struct {
	stdin   *stdinQueue
	journal *journal

	mu         sync.Mutex
	sessionID  string
	open       *turn
	prompts    int
	replay     json.RawMessage // id of the request during which updates are history
	ended      bool
	pending    map[string]*permission
	askedUntil int    // number of the newest permission request
	askPrefix  string // what ids of permission requests begin with
}

func newConversation(stdin *stdinQueue, journal *journal) *conversation {
	return &conversation{
		stdin: stdin, journal: journal,
		pending: map[string]*permission{}, askPrefix: "p-" + credential.NewID() + "-",
	}
}

func (c *conversation) opened(sessionID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessionID = sessionID
}

func (c *conversation) replayUntil(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replay = id
}

// responded ends the replay if it belongs to that request.
func (c *conversation) responded(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes.Equal(c.replay, id) {
		c.replay = nil
	}
}

// moment says whether updates are history now, and which turn is open.
func (c *conversation) moment() (replaying bool, turnID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replay != nil, c.turnID()
}

func (c *conversation) turnID() string {
	if c.open == nil {
		return ""
	}
	return c.open.id
}

// Prompt opens a turn with ACP content blocks, passed on as they are. It
// returns once turn_started is on its way to the recorder and the request to
// the agent; it waits for neither. The end comes by Hooks.TurnEnded. Errors are
// ErrTurnOpen, ErrNotReady, ErrBadPrompt and ErrInputStuck; after an error there
// is no turn.
func (a *Agent) Prompt(turnID, key string, blocks []json.RawMessage) error {
	return a.talk.prompt(turnID, key, blocks)
}

func (c *conversation) prompt(turnID, key string, blocks []json.RawMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.sessionID == "" {
		return ErrNotReady
	}
	if c.open != nil {
		return ErrTurnOpen
	}
	if len(blocks) == 0 {
		return ErrBadPrompt
	}
	t := &turn{id: turnID, key: key, requestID: strconv.Itoa(firstPromptID + c.prompts)}
	frame, err := encode(frame{
		ID: json.RawMessage(t.requestID), Method: sdk.AgentMethodSessionPrompt,
		Params: promptParams{SessionID: c.sessionID, Prompt: blocks},
	})
	if err != nil {
		return ErrBadPrompt
	}
	started := newEntry(wire.EventTurnStarted, turnID, wire.TurnStarted{Key: key})
	if err := c.push(frame, func() { c.journal.post(started) }); err != nil {
		return err
	}
	c.prompts++
	c.open = t
	return nil
}

// push queues a frame for the agent; the lock is held.
func (c *conversation) push(frame []byte, admitted func()) error {
	err := c.stdin.push(frame, admitted)
	if errors.Is(err, errStdinClosed) {
		return ErrNotReady
	}
	return err
}

// Cancel asks the agent to end the open turn and settles its outstanding
// permission requests, also those that it raises before it hears of this, as
// cancelled. The turn ends when the agent says so. Errors are ErrNoTurn,
// ErrNotReady and ErrInputStuck.
func (a *Agent) Cancel() error { return a.talk.cancel() }

func (c *conversation) cancel() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		return ErrNoTurn
	}
	frame, err := encode(frame{
		Method: sdk.AgentMethodSessionCancel,
		Params: sdk.CancelNotification{SessionId: sdk.SessionId(c.sessionID)},
	})
	if err != nil {
		return err
	}
	if err := c.push(frame, nil); err != nil {
		return err
	}
	c.open.cancelled = true
	c.settleWhere(func(*permission) bool { return true })
	return nil
}

// answered returns the open turn if the response belongs to its prompt.
func (c *conversation) answered(id json.RawMessage) *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil || c.open.requestID != string(id) {
		return nil
	}
	return c.open
}

// settleTurn settles what a turn that is over has left outstanding.
func (c *conversation) settleTurn(t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleWhere(func(p *permission) bool { return p.turnID == t.id })
}

// leave closes the turn, so that the next can be opened.
func (c *conversation) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = nil
}

// end refuses further prompts, settles everything outstanding as cancelled and
// returns the turn that is still open. It can be repeated.
func (c *conversation) end() *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.settleWhere(func(*permission) bool { return true })
	return c.open
}
