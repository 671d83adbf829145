package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/kandev/recovery/agentctl/wire"
)

// permission is an outstanding request of the agent.
type permission struct {
	id      string
	rpcID   json.RawMessage
	turnID  string
	options []string        // ids offered; an answer must be one of them
	open    context.Context // until it is settled
	over    context.CancelFunc
}

// ask registers a request before it is announced, so that an answer can come at
// once. It says whether nobody will be asked: the turn is being cancelled, or
// the agent is at its end.
func (c *conversation) ask(rpcID json.RawMessage, options []string) (p *permission, moot bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.askedUntil++
	p = &permission{
		id: c.askPrefix + strconv.Itoa(c.askedUntil), rpcID: rpcID, turnID: c.turnID(), options: options,
	}
	p.open, p.over = context.WithCancel(context.Background())
	c.pending[p.id] = p
	return p, c.ended || (c.open != nil && c.open.cancelled)
}

// AnswerPermission settles an outstanding request. It returns once the answer
// is on its way; it waits for neither the agent nor the recorder. Errors are
// ErrUnknownPermission, ErrPermissionSettled, ErrBadAnswer, ErrNotReady and
// ErrInputStuck; after the last three the request is still outstanding.
func (a *Agent) AnswerPermission(requestID string, answer wire.PermissionAnswer) error {
	return a.talk.answer(requestID, answer)
}

func (c *conversation) answer(requestID string, answer wire.PermissionAnswer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[requestID]
	if p == nil {
		if c.wasAsked(requestID) {
			return ErrPermissionSettled
		}
		return ErrUnknownPermission
	}
	if answer.Cancelled == (answer.OptionID != "") {
		return ErrBadAnswer
	}
	if !answer.Cancelled && !slices.Contains(p.options, answer.OptionID) {
		return ErrBadAnswer
	}
	return c.settle(p, answer)
}

// wasAsked tells ids that were given out from all others without keeping them.
func (c *conversation) wasAsked(requestID string) bool {
	digits, ok := strings.CutPrefix(requestID, c.askPrefix)
	if !ok {
		return false
	}
	n, err := strconv.Atoi(digits)
	return err == nil && n >= 1 && n <= c.askedUntil && strconv.Itoa(n) == digits
}

// settle sends the answer and has it recorded; the lock is held. If it cannot be
// sent the request stays outstanding.
func (c *conversation) settle(p *permission, answer wire.PermissionAnswer) error {
	outcome := sdk.NewRequestPermissionOutcomeCancelled()
	if !answer.Cancelled {
		outcome = sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(answer.OptionID))
	}
	frame, err := encode(frame{ID: p.rpcID, Result: sdk.RequestPermissionResponse{Outcome: outcome}})
	if err != nil {
		return err
	}
	return c.push(frame, func() { c.settled(p, answer) })
}

func (c *conversation) settled(p *permission, answer wire.PermissionAnswer) {
	delete(c.pending, p.id)
	p.over()
	c.journal.post(newEntry(wire.EventPermissionSettled, p.turnID, wire.PermissionSettled{
		RequestID: p.id, OptionID: answer.OptionID, Cancelled: answer.Cancelled,
	}))
}

// settleWhere cancels the requests that match, in the order they were asked in.
// An agent that cannot be told has ended or never reads: for it, too, they are
// over. The lock is held.
func (c *conversation) settleWhere(match func(*permission) bool) {
	var over []*permission
	for _, p := range c.pending {
		if match(p) {
			over = append(over, p)
		}
	}
	slices.SortFunc(over, func(a, b *permission) int {
		return cmpAsked(a.id, b.id)
	})
	for _, p := range over {
		cancelled := wire.PermissionAnswer{Cancelled: true}
		if err := c.settle(p, cancelled); err != nil {
			c.settled(p, cancelled)
		}
	}
}

// cmpAsked orders ids of one conversation, which differ in their number only.
func cmpAsked(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// settleOne cancels a request that nobody will be asked about, unless it is
// settled already.
func (c *conversation) settleOne(one *permission) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleWhere(func(p *permission) bool { return p == one })
}

// withdraw settles the request that the agent has taken back.
func (c *conversation) withdraw(rpcID json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleWhere(func(p *permission) bool { return bytes.Equal(p.rpcID, rpcID) })
}

// optionIDs returns the ids of the options that a request offers; false if the
// request is malformed.
func optionIDs(params json.RawMessage) ([]string, bool) {
	var request struct {
		Options []struct {
			OptionID string `json:"optionId"`
		} `json:"options"`
	}
	if err := json.Unmarshal(params, &request); err != nil || request.Options == nil {
		return nil, false
	}
	ids := make([]string, 0, len(request.Options))
	for _, o := range request.Options {
		ids = append(ids, o.OptionID)
	}
	return ids, true
}
