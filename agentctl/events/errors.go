package events

import (
	"errors"
	"fmt"
)

// Reasons for which an append fails or a stream ends.
var (
	// ErrClosed: the log was closed, and what was not delivered is gone. An
	// append after Finish fails with it too.
	ErrClosed = errors.New("event log is closed")
	// ErrFinished: no event will follow the last one delivered.
	ErrFinished = errors.New("event log is finished")
	// ErrNewerStream: a newer attach took over.
	ErrNewerStream = errors.New("a newer stream was attached")
	// ErrStreamClosed: the stream's own Close was called.
	ErrStreamClosed = errors.New("event stream is closed")
	// ErrNotDelivered: an acknowledgement names an event that this stream has
	// not delivered.
	ErrNotDelivered = errors.New("acknowledged event was not delivered")
)

// GapError refuses an attach whose cursor lies outside what is kept (B-1).
type GapError struct {
	First int64 // oldest event kept; Next when none is
	Next  int64 // number that the next event will have
}

// Error says what is kept.
func (e *GapError) Error() string {
	return fmt.Sprintf("cursor is outside the kept events: first %d, next %d", e.First, e.Next)
}
