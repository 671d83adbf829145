package acp

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/kandev/recovery/agentctl/wire"
)

// notes is a recorder in memory that can be made to block.
type notes struct {
	mu     sync.Mutex
	events []wire.Event
	change chan struct{}
	paused bool
	closed bool
	stalls chan struct{} // a token lets one request meet a stalled reader
}

func newNotes() *notes {
	return &notes{change: make(chan struct{}), stalls: make(chan struct{}, 1)}
}

func (n *notes) Stalled(ctx context.Context, _ <-chan int64) bool {
	select {
	case <-n.stalls:
		return true
	case <-ctx.Done():
		return false
	}
}

func (n *notes) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
	close(n.change)
	n.change = make(chan struct{})
}

func (n *notes) pause()  { n.set(func() { n.paused = true }) }
func (n *notes) resume() { n.set(func() { n.paused = false }) }
func (n *notes) close()  { n.set(func() { n.closed = true }) }

func (n *notes) Append(ctx context.Context, kind wire.EventKind, turnID string, payload json.RawMessage) (int64, error) {
	for {
		n.mu.Lock()
		if n.closed {
			n.mu.Unlock()
			return 0, io.ErrClosedPipe
		}
		if !n.paused {
			n.events = append(n.events, wire.Event{Kind: kind, TurnID: turnID, Payload: payload})
			seq := len(n.events)
			n.mu.Unlock()
			return int64(seq), nil
		}
		change := n.change
		n.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (n *notes) all() []wire.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]wire.Event(nil), n.events...)
}

// kinds is what was recorded, in order, as one word an event.
func (n *notes) kinds() []string {
	var out []string
	for _, e := range n.all() {
		out = append(out, string(e.Kind))
	}
	return out
}
