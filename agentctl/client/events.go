package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/coder/websocket"

	"github.com/kandev/recovery/agentctl/wire"
)

// EventStream delivers one instance's events. Next is for one caller at a time;
// Ack and Close may be called beside it.
type EventStream struct {
	conn  *websocket.Conn
	hello wire.ServerFrame
}

// Events attaches to an instance, from the event after the given number. It
// ends any other stream of the instance. A cursor outside what is kept is a
// *GapError. ctx bounds the attach only.
func (c *Client) Events(ctx context.Context, id string, after int64) (*EventStream, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	url := "wss://" + c.cfg.Endpoint + path(wire.RouteEvents, id) +
		"?" + wire.QueryEventsAfter + "=" + strconv.FormatInt(after, 10)
	header := http.Header{}
	if c.cfg.Credential != "" {
		header.Set(wire.HeaderCredential, "Bearer "+c.cfg.Credential)
	}
	conn, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: header})
	if err != nil {
		return nil, attachFailure(resp, err)
	}
	conn.SetReadLimit(maxAnswerBytes)
	stream := &EventStream{conn: conn}
	if stream.hello, err = stream.read(ctx); err != nil {
		return nil, stream.fail(err)
	}
	switch stream.hello.Type {
	case wire.FrameHello:
		return stream, nil
	case wire.FrameGap:
		return nil, stream.fail(&GapError{First: stream.hello.First, Next: stream.hello.Next})
	default:
		return nil, stream.fail(fmt.Errorf("%w: stream began with %q", ErrNoAnswer, stream.hello.Type))
	}
}

// attachFailure tells the server's refusal to upgrade from a failed transport.
func attachFailure(resp *http.Response, err error) error {
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return classify(err)
	}
	body, readErr := io.ReadAll(resp.Body)
	if readErr != nil {
		return classify(readErr)
	}
	return refusal(resp.StatusCode, body)
}

// Hello is the frame with which the server opened the stream.
func (s *EventStream) Hello() wire.ServerFrame { return s.hello }

// Next waits for the next consecutive events, at least one. Ending ctx ends the
// stream. The end of a stream is ErrNewerStream, ErrSuperseded, ErrStopped, or
// ErrNoAnswer for anything else.
func (s *EventStream) Next(ctx context.Context) ([]wire.Event, error) {
	frame, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	if frame.Type != wire.FrameEvents || len(frame.Events) == 0 {
		return nil, s.fail(fmt.Errorf("%w: unexpected frame %q", ErrNoAnswer, frame.Type))
	}
	return frame.Events, nil
}

// Ack says that everything up to seq is committed.
func (s *EventStream) Ack(ctx context.Context, seq int64) error {
	raw, err := json.Marshal(wire.ClientFrame{Ack: seq})
	if err != nil {
		return fmt.Errorf("encode acknowledgement: %w", err)
	}
	if err := s.conn.Write(ctx, websocket.MessageText, raw); err != nil {
		return streamEnd(err)
	}
	return nil
}

// Close ends the stream without waiting for the server. It may be repeated.
func (s *EventStream) Close() error {
	if err := s.conn.CloseNow(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close event stream: %w", err)
	}
	return nil
}

func (s *EventStream) read(ctx context.Context) (wire.ServerFrame, error) {
	var frame wire.ServerFrame
	_, raw, err := s.conn.Read(ctx)
	if err != nil {
		return frame, streamEnd(err)
	}
	if err := json.Unmarshal(raw, &frame); err != nil {
		return frame, s.fail(fmt.Errorf("%w: unreadable frame", ErrNoAnswer))
	}
	return frame, nil
}

// fail closes the connection and returns err, with the failure to close if
// there was one.
func (s *EventStream) fail(err error) error { return errors.Join(err, s.Close()) }
