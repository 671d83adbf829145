package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/coder/websocket"

	"github.com/kandev/recovery/agentctl/wire"
)

// Outcomes that are not an answer of the server. Decide with errors.Is.
var (
	// ErrRefused: nothing listens at the endpoint, on either loopback family if
	// it is a loopback address (O-001.8).
	ErrRefused = errors.New("nothing listens at the endpoint")
	// ErrNoAnswer: timeout, reset, or an answer that cannot be understood. The
	// request may have taken effect.
	ErrNoAnswer = errors.New("no usable answer from the control server")
	// ErrIdentity: something answered that is not the server expected, or whose
	// identity cannot be read (O-001.5, O-001.6).
	ErrIdentity = errors.New("not the expected control server")
	// ErrProof: the server did not prove that it holds the credential
	// (O-001.10).
	ErrProof = errors.New("the control server did not prove itself")
	// ErrNewerStream: a newer attach to the instance ended this stream (B-1).
	ErrNewerStream = errors.New("a newer event stream replaced this one")
)

// Refusals by the server that callers branch on; errors.Is compares by code.
var (
	// ErrSuperseded: another credential drives now. It is returned by calls as
	// well as by event streams, and is never to be retried (O-002.3).
	ErrSuperseded error = &wire.Error{Code: wire.CodeSuperseded, Message: "a newer credential drives"}
	// ErrStopped: the instance was stopped, or it ended and every event was
	// delivered.
	ErrStopped error = &wire.Error{Code: wire.CodeStopped, Message: "the instance was stopped"}
)

// GapError answers an attach whose cursor is outside what the server keeps.
type GapError struct {
	First int64 // oldest event kept, or Next if none is
	Next  int64 // number that the next event will have
}

// Error says what is kept.
func (e *GapError) Error() string {
	return fmt.Sprintf("cursor outside the events kept: first %d, next %d", e.First, e.Next)
}

// classify turns a failure to exchange a request into one of the package's
// outcomes.
func classify(err error) error {
	if errors.Is(err, ErrRefused) || errors.Is(err, ErrIdentity) || errors.Is(err, ErrNoAnswer) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNoAnswer, err)
}

// classifyHandshake tells a peer that broke off, or said nothing, from one that
// spoke and is not ours.
func classifyHandshake(err error) error {
	var timeout net.Error
	var broken syscall.Errno
	switch {
	case errors.Is(err, ErrIdentity):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.As(err, &broken), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	default:
		return fmt.Errorf("%w: %w", ErrIdentity, err)
	}
}

// streamEnd maps the reason for which the server closed an event stream.
func streamEnd(err error) error {
	switch websocket.CloseStatus(err) {
	case wire.CloseNewerStream:
		return ErrNewerStream
	case wire.CloseSuperseded:
		return ErrSuperseded
	case wire.CloseStopped:
		return ErrStopped
	default:
		return classify(err)
	}
}
