// Package events holds what one agent has said until the backend has committed
// it: a numbered log, bounded in count and bytes, delivered in order to one
// stream and dropped by acknowledgement. A producer that reaches a bound waits;
// nothing is ever dropped to make room.
package events

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/kandev/recovery/agentctl/wire"
)

// overhead is what an event costs beyond its payload, so that many empty events
// cannot beat a bound in bytes.
const overhead = 160

// Limits bound one log. Count is the number of events kept while no stream is
// attached (S-001.6); Bytes holds always (B-8).
type Limits struct {
	Count int
	Bytes int64
}

// Log is the event log of one instance. It is safe for concurrent use; events
// of one producer keep their order.
type Log struct {
	limits Limits
	budget *Budget
	clock  func() time.Time

	mu       sync.Mutex
	events   []wire.Event // kept, consecutive
	bytes    int64        // cost of events
	next     int64        // number of the next event
	stream   *Stream      // attached, or nil
	taken    int64        // newest number that a reader is known to have
	closed   bool
	finished bool
	changed  chan struct{} // closed and replaced at every change
}

// NewLog returns an empty log whose first event will have number 1.
func NewLog(limits Limits, budget *Budget, clock func() time.Time) *Log {
	return &Log{limits: limits, budget: budget, clock: clock, next: 1, changed: make(chan struct{})}
}

// Append numbers an event and keeps it; the log owns payload from then on. At a
// bound it waits for room, an attach, an acknowledgement, or the log's end; ctx
// bounds only that wait, so an append that has room succeeds under a cancelled
// ctx. It returns ErrClosed after Close and Finish.
func (l *Log) Append(ctx context.Context, kind wire.EventKind, turnID string, payload json.RawMessage) (int64, error) {
	event := wire.Event{Kind: kind, TurnID: turnID, Payload: payload}
	for {
		seq, until, err := l.tryAppend(event)
		if err != nil || seq != 0 {
			return seq, err
		}
		select {
		case <-until.changed:
		case <-until.freed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// pause holds what a paused producer waits for. freed is nil when the overall
// budget is not what stopped it.
type pause struct{ changed, freed <-chan struct{} }

func (l *Log) tryAppend(event wire.Event) (int64, pause, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.finished {
		return 0, pause{}, ErrClosed
	}
	size := cost(event)
	// An attached log that holds nothing takes one event whatever the bounds
	// say, so that detached logs cannot starve it.
	force := l.stream != nil && len(l.events) == 0
	if !force && !l.hasRoom(size) {
		return 0, pause{changed: l.changed}, nil
	}
	if freed, ok := l.budget.reserve(size, force); !ok {
		return 0, pause{changed: l.changed, freed: freed}, nil
	}
	event.Seq, event.At = l.next, l.clock()
	l.next++
	l.events = append(l.events, event)
	l.bytes += size
	l.notify()
	return event.Seq, pause{}, nil
}

func (l *Log) hasRoom(size int64) bool {
	if l.stream == nil && len(l.events) >= l.limits.Count {
		return false
	}
	return l.bytes+size <= l.limits.Bytes
}

func cost(e wire.Event) int64 { return int64(len(e.Payload)+len(e.TurnID)) + overhead }

// Attach begins delivery after event number after, which is the last one that
// the caller has committed, or 0. An older stream ends with ErrNewerStream. A
// cursor outside what is kept is refused with *GapError and changes nothing; a
// closed log refuses with ErrClosed. Attaching alone drops no event.
func (l *Log) Attach(after int64) (*Stream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if first := l.first(); after < first-1 || after >= l.next {
		return nil, &GapError{First: first, Next: l.next}
	}
	if l.stream != nil {
		l.stream.end(ErrNewerStream)
	}
	s := newStream(l, after)
	l.stream = s
	l.taken = max(l.taken, after)
	l.endIfSettled()
	l.notify()
	return s, nil
}

// Attached reports whether a stream is attached.
func (l *Log) Attached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream != nil
}

// Bounds returns the number of the oldest event kept (that of the next one when
// none is) and the number of the next one.
func (l *Log) Bounds() (first, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first(), l.next
}

// LastSeq returns the number of the newest event, 0 before the first.
func (l *Log) LastSeq() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - 1
}

// Close ends the log at once: paused producers and the stream return ErrClosed,
// and events that were not acknowledged are gone (S-001.10). Closing twice is
// harmless.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	l.drop(len(l.events))
	if l.stream != nil {
		l.stream.end(ErrClosed)
		l.stream = nil
	}
	l.notify()
}

// Finish says that no event will follow. What is kept stays deliverable; a
// stream that has delivered all of it ends with ErrFinished.
func (l *Log) Finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished = true
	l.endIfSettled()
	l.notify()
}

func (l *Log) first() int64 { return l.next - int64(len(l.events)) }

// drop forgets the n oldest events and gives their bytes back.
func (l *Log) drop(n int) {
	var freed int64
	for _, e := range l.events[:n] {
		freed += cost(e)
	}
	clear(l.events[:n]) // the array outlives the slice's front
	l.events = l.events[n:]
	if len(l.events) == 0 {
		l.events = nil
	}
	l.bytes -= freed
	l.budget.release(freed)
}

// endIfSettled ends the stream of a finished log of which nothing is kept: no
// delivery and no acknowledgement can follow.
func (l *Log) endIfSettled() {
	if l.finished && l.stream != nil && len(l.events) == 0 {
		l.stream.end(ErrFinished)
		l.stream = nil
	}
}

func (l *Log) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}
