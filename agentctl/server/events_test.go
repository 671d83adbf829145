package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
)

func attach(t *testing.T, c *client.Client, id string, after int64) *client.EventStream {
	t.Helper()
	stream, err := c.Events(t.Context(), id, after)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stream.Close()) })
	return stream
}

// end expects the stream to end.
func end(t *testing.T, s *client.EventStream) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for {
		if _, err := s.Next(ctx); err != nil {
			return err
		}
	}
}

// S-001.5, B-1: what was produced while nobody was attached comes first, without
// a hole, and what was acknowledged does not come again.
func TestEventsAreDeliveredAndAcknowledged(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	_, err := c.Prompt(t.Context(), "i", "k1", say("hello"))
	require.NoError(t, err)

	stream := attach(t, c, "i", 0)
	require.Equal(t, wire.FrameHello, stream.Hello().Type)
	require.Equal(t, int64(1), stream.Hello().First)
	events := collect(t, stream, wire.EventTurnEnded)
	var kinds []wire.EventKind
	for n, event := range events {
		require.Equal(t, int64(n+1), event.Seq)
		kinds = append(kinds, event.Kind)
	}
	require.Equal(t, []wire.EventKind{wire.EventTurnStarted, wire.EventUpdate, wire.EventTurnEnded}, kinds)
	require.NoError(t, stream.Close())

	stream = attach(t, c, "i", 1)
	require.Equal(t, events[1:], collect(t, stream, wire.EventTurnEnded), "unacknowledged: again")
	require.NoError(t, stream.Ack(t.Context(), 3))
	require.Eventually(t, func() bool {
		var gap *client.GapError
		_, err := c.Events(t.Context(), "i", 0)
		return errors.As(err, &gap) && *gap == client.GapError{First: 4, Next: 4}
	}, deadline, 5*time.Millisecond, "acknowledged: gone")
	require.Equal(t, int64(4), attach(t, c, "i", 3).Hello().Next)
}

// B-1: a cursor beyond what exists is a gap as well.
func TestCursorBeyondTheLog(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	_, err := c.Events(t.Context(), "i", 99)
	var gap *client.GapError
	require.ErrorAs(t, err, &gap)
	require.Equal(t, client.GapError{First: 1, Next: 1}, *gap)
	_, err = c.Events(t.Context(), "unknown", 0)
	requireCode(t, wire.CodeNotFound, err)
}

// B-1: the newest attach wins.
func TestNewerStreamWins(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	older := attach(t, c, "i", 0)
	newer := attach(t, c, "i", 0)
	require.ErrorIs(t, end(t, older), client.ErrNewerStream)

	_, err := c.Prompt(t.Context(), "i", "k", say("hello"))
	require.NoError(t, err)
	require.Len(t, collect(t, newer, wire.EventTurnEnded), 3)
}

// O-002.2: rotation ends every open stream, and no acknowledgement of it counts
// afterwards.
func TestRotationEndsStreams(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	_, err := c.Prompt(t.Context(), "i", "k", say("hello"))
	require.NoError(t, err)
	stream := attach(t, c, "i", 0)
	collect(t, stream, wire.EventTurnEnded)

	issued, err := c.Rotate(t.Context())
	require.NoError(t, err)
	_ = stream.Ack(t.Context(), 3) // on its way when the stream is ended
	require.ErrorIs(t, end(t, stream), client.ErrSuperseded)
	_, err = c.Events(t.Context(), "i", 0)
	require.ErrorIs(t, err, client.ErrSuperseded)

	again := attach(t, c.WithCredential(issued.Credential), "i", 0)
	require.Len(t, collect(t, again, wire.EventTurnEnded), 3)
}

// W-7, S-001.9: a client that reads nothing holds up no rotation, and is
// detached in the end.
func TestStalledStream(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	attach(t, c, "i", 0)
	_, err := c.Prompt(t.Context(), "i", "k", say("flood"))
	require.NoError(t, err)
	// The server can write no more once the agent's events stop being taken.
	var before int64
	require.Eventually(t, func() bool {
		list, err := c.List(t.Context())
		still := err == nil && list[0].LastSeq == before && before > 0
		before = list[0].LastSeq
		return still
	}, deadline, 100*time.Millisecond)

	began := time.Now()
	_, err = c.Rotate(t.Context())
	require.NoError(t, err)
	require.Less(t, time.Since(began), 5*time.Second)
}

// S-001.10: a stop ends the stream of its instance, and that of no other.
func TestStopEndsTheStream(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	createReady(t, c, "j", nil)
	stopped, other := attach(t, c, "i", 0), attach(t, c, "j", 0)
	_, err := c.Stop(t.Context(), "i", time.Second)
	require.NoError(t, err)
	require.ErrorIs(t, end(t, stopped), client.ErrStopped)

	_, err = c.Prompt(t.Context(), "j", "k", say("hello"))
	require.NoError(t, err)
	collect(t, other, wire.EventTurnEnded)
}

// An agent that ended by itself: everything is delivered, and the stream ends
// once it is acknowledged.
func TestStreamOfAnEndedAgent(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	stream := attach(t, c, "i", 0)
	_, err := c.Prompt(t.Context(), "i", "k", say("exit"))
	require.NoError(t, err)
	events := collect(t, stream, wire.EventAgentExited)
	require.NoError(t, stream.Ack(t.Context(), events[len(events)-1].Seq))
	require.ErrorIs(t, end(t, stream), client.ErrStopped)
}

// A permission request is announced on the stream and answered beside it.
func TestPermissionRoundTrip(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	stream := attach(t, c, "i", 0)
	_, err := c.Prompt(t.Context(), "i", "k", say("ask"))
	require.NoError(t, err)
	requested := permissionID(t, collect(t, stream, wire.EventPermissionRequest))

	answer := wire.PermissionAnswer{OptionID: "yes"}
	requireCode(t, wire.CodeBadRequest, c.AnswerPermission(t.Context(), "i", requested, wire.PermissionAnswer{}))
	require.NoError(t, c.AnswerPermission(t.Context(), "i", requested, answer))
	requireCode(t, wire.CodeSettled, c.AnswerPermission(t.Context(), "i", requested, answer))
	collect(t, stream, wire.EventTurnEnded)
}

// permissionID is that of the request that the events end with.
func permissionID(t *testing.T, events []wire.Event) string {
	t.Helper()
	var requested wire.PermissionRequested
	require.NoError(t, json.Unmarshal(events[len(events)-1].Payload, &requested))
	return requested.RequestID
}

// A client that acknowledges what it was not sent does not speak the protocol.
func TestBadAcknowledgement(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	stream := attach(t, c, "i", 0)
	require.NoError(t, stream.Ack(t.Context(), 7))
	err := end(t, stream)
	require.ErrorIs(t, err, client.ErrNoAnswer)
	require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), "%v", err)
}
