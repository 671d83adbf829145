package events

import (
	"context"
	"time"
)

// stallSteps is in how many steps a stall is measured. A process that was frozen
// finds one of them over, not all, and so leaves its reader time to go on.
const stallSteps = 5

// Stalled waits for what becomes of an event that is about to be appended, and
// reports whether the attached reader, before it has taken that event, takes
// nothing of what is on its way to it, from now on and for patience in one go
// (S-001.9). It returns false once the event was taken, and when ctx or the log
// ends. The event's number comes over appended, if it is ever appended.
//
// Only a delivery that has begun can stall: without a stream, and while nothing
// is handed out because the reader has yet to acknowledge, this waits.
func (l *Log) Stalled(ctx context.Context, patience time.Duration, appended <-chan int64) bool {
	step := time.NewTicker(patience / stallSteps)
	step.Stop() // it runs while something is on its way
	defer step.Stop()
	var (
		seq     int64 // 0 until it is known
		watched handover
		steps   int // that watched is going on
	)
	for {
		now := l.progress()
		if now.closed || seq != 0 && seq <= now.taken {
			return false
		}
		if now.handover != watched {
			watched, steps = now.handover, 0
			step.Stop()
			if watched.to != nil {
				step.Reset(patience / stallSteps)
			}
		}
		if steps == stallSteps {
			return true
		}
		select {
		case <-now.changed:
		case seq = <-appended:
			appended = nil
		case <-step.C:
			steps++
		case <-ctx.Done():
			return false
		}
	}
}

// handover is events on their way to a reader; zero if none are.
type handover struct {
	to    *Stream
	after int64 // newest number that the reader is known to have
}

// progress is how far the delivery of a log is.
type progress struct {
	handover
	taken   int64 // newest number that a reader is known to have
	closed  bool
	changed <-chan struct{} // closed when any of this may differ
}

func (l *Log) progress() progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := progress{taken: l.taken, closed: l.closed, changed: l.changed}
	if s := l.stream; s != nil && s.underWay() {
		p.handover = handover{to: s, after: s.taken}
	}
	return p
}
