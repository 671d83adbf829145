package instance

import (
	"context"
	"errors"

	"github.com/kandev/recovery/agentctl/events"
	"github.com/kandev/recovery/agentctl/wire"
)

// GapError refuses an attach whose cursor lies outside what is kept (B-1).
type GapError = events.GapError

// Reasons for which a Stream ends.
var (
	ErrNewerStream  = events.ErrNewerStream  // a newer attach won
	ErrFinished     = events.ErrFinished     // the agent ended and everything was delivered
	ErrStopped      = events.ErrClosed       // the instance was stopped
	ErrStreamClosed = events.ErrStreamClosed // Close was called
	ErrNotDelivered = events.ErrNotDelivered // an acknowledgement of what was not delivered
)

// Stream delivers an instance's events to one reader; see events.Stream.
type Stream interface {
	// Bounds are, at the attach, the number of the oldest event kept (the next
	// one's if none is) and of the next event.
	Bounds() (first, next int64)
	Next(ctx context.Context) ([]wire.Event, error)
	Ack(seq int64) error
	Taken(seq int64)
	UnderWay() bool
	Close()
	Done() <-chan struct{}
	Err() error
}

type attachment struct {
	*events.Stream
	first, next int64
}

func (a attachment) Bounds() (first, next int64) { return a.first, a.next }

// Attach opens the event stream of an instance after event number after; the
// newest stream wins. The error is a *GapError if the cursor lies outside what
// is kept, and a *wire.Error otherwise.
func (s *Supervisor) Attach(id string, after int64) (Stream, error) {
	i, err := s.find(id)
	if err != nil {
		return nil, err
	}
	i.touch()
	stream, err := i.log.Attach(after)
	var gap *GapError
	switch {
	case errors.As(err, &gap):
		return nil, gap
	case errors.Is(err, events.ErrClosed):
		return nil, refuse(wire.CodeStopped, "the instance was stopped")
	case err != nil:
		return nil, asWire(err, wire.CodeInternal, "the event stream could not be opened")
	}
	first, next := i.log.Bounds()
	return attachment{Stream: stream, first: first, next: next}, nil
}
