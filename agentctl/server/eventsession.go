package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/instance"
	"github.com/kandev/recovery/agentctl/wire"
)

var (
	// errRevoked ends a stream whose credential was superseded.
	errRevoked = errors.New("credential superseded")
	// errBadFrame ends a stream whose client does not speak the protocol.
	errBadFrame = errors.New("unreadable acknowledgement")
)

// eventSession is one stream over one connection: batches out, acknowledgements
// in.
type eventSession struct {
	conn     *websocket.Conn
	stream   instance.Stream
	sent     atomic.Int64  // newest event whose frame was written
	sending  chan struct{} // holds one token when there is a newer one
	receiver sync.WaitGroup
}

func newEventSession(conn *websocket.Conn, stream instance.Stream) *eventSession {
	return &eventSession{conn: conn, stream: stream, sending: make(chan struct{}, 1)}
}

// run delivers until the stream, the connection or ctx ends, and says why. The
// receiver goes on until the connection is closed: it is what hears the answer
// to a ping.
func (e *eventSession) run(ctx context.Context) error {
	alive, broken := context.WithCancel(ctx)
	receiving, received := context.WithCancelCause(ctx)
	defer received(nil)
	e.receiver.Go(func() {
		defer broken()
		e.receive(received)
	})
	e.receiver.Go(func() { e.ask(alive, received) })
	err := e.deliver(alive, receiving)
	if reason := context.Cause(receiving); reason != nil {
		return reason
	}
	return err
}

// deliver sends while the connection is alive, and waits for events only while
// acknowledgements are received. One that is bad breaks off no frame: that would
// take the connection with it, and the goodbye that still goes over it.
func (e *eventSession) deliver(alive, receiving context.Context) error {
	first, next := e.stream.Bounds()
	if err := send(alive, e.conn, wire.ServerFrame{Type: wire.FrameHello, First: first, Next: next}); err != nil {
		return err
	}
	for {
		batch, err := e.stream.Next(receiving)
		if errors.Is(err, instance.ErrFinished) {
			return e.awaitAcks(receiving)
		}
		if err != nil {
			return err
		}
		if err := e.handOver(alive, batch); err != nil {
			return err
		}
	}
}

// handOver sends a batch.
func (e *eventSession) handOver(ctx context.Context, batch []wire.Event) error {
	raw, err := wire.EncodeEvents(batch)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, frameTimeout)
	defer cancel()
	if err := write(ctx, e.conn, raw); err != nil {
		return err
	}
	e.sent.Store(batch[len(batch)-1].Seq)
	select {
	case e.sending <- struct{}{}:
	default:
	}
	return nil
}

// ask finds out whether the client reads what it is slow to acknowledge: what
// lies in the buffers in between has reached nobody (S-001.9). The pong says that
// everything before the ping was taken; a client that owes it for frameTimeout is
// detached.
func (e *eventSession) ask(alive context.Context, failed context.CancelCauseFunc) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-e.sending:
		case <-alive.Done():
			return
		}
		wait.Reset(askAfter)
		select {
		case <-wait.C:
		case <-alive.Done():
			return
		}
		if !e.stream.UnderWay() {
			continue
		}
		sent := e.sent.Load()
		if err := e.ping(alive); err != nil {
			failed(fmt.Errorf("frame not taken: %w", err))
			return
		}
		e.stream.Taken(sent)
	}
}

func (e *eventSession) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, frameTimeout)
	defer cancel()
	return e.conn.Ping(ctx)
}

// awaitAcks leaves the client the time to commit the last events.
func (e *eventSession) awaitAcks(ctx context.Context) error {
	select {
	case <-e.stream.Done():
		return e.stream.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receive takes acknowledgements until the connection breaks, and reports the
// first failure. It reads under no context: a read that is cancelled would break
// the connection that the closing frame still goes over.
func (e *eventSession) receive(failed context.CancelCauseFunc) {
	for {
		_, raw, err := e.conn.Read(context.Background())
		if err != nil {
			failed(fmt.Errorf("receive: %w", err))
			return
		}
		if err := e.acknowledge(raw); err != nil {
			failed(err)
		}
	}
}

func (e *eventSession) acknowledge(raw []byte) error {
	var frame wire.ClientFrame
	if err := json.Unmarshal(raw, &frame); err != nil {
		return errBadFrame
	}
	return e.stream.Ack(frame.Ack)
}

func send(ctx context.Context, conn *websocket.Conn, frame wire.ServerFrame) error {
	raw, err := json.Marshal(frame)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, frameTimeout)
	defer cancel()
	return write(ctx, conn, raw)
}

func write(ctx context.Context, conn *websocket.Conn, frame []byte) error {
	if err := conn.Write(ctx, websocket.MessageText, frame); err != nil {
		return fmt.Errorf("send frame: %w", err)
	}
	return nil
}

// closeStream tells the client why its stream ends, if the reason is one that
// it has to know. The connection is closed either way.
func (s *Server) closeStream(conn *websocket.Conn, reason error) {
	var err error
	if code, text := closeCode(reason); code != 0 {
		err = conn.Close(code, text)
	} else {
		err = conn.CloseNow()
	}
	s.cfg.Logger.Debug("event stream ended", zap.NamedError("reason", reason), zap.Error(err))
}

func closeCode(reason error) (code websocket.StatusCode, text string) {
	var gap *instance.GapError
	switch {
	case errors.Is(reason, errRevoked):
		return wire.CloseSuperseded, "credential superseded"
	case errors.Is(reason, instance.ErrNewerStream):
		return wire.CloseNewerStream, "a newer stream was attached"
	case errors.Is(reason, instance.ErrFinished), errors.Is(reason, instance.ErrStopped):
		return wire.CloseStopped, "no event will follow"
	case errors.As(reason, &gap):
		return wire.CloseGap, "cursor outside the events kept"
	case errors.Is(reason, errBadFrame), errors.Is(reason, instance.ErrNotDelivered):
		return websocket.StatusPolicyViolation, "bad acknowledgement"
	default:
		return 0, ""
	}
}
