package api_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/userapi"
)

var errEnough = errors.New("enough")

// follow reads events after the position until it has n.
func (b *bench) follow(t *testing.T, session string, after int64, n int) []userapi.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	var got []userapi.Event
	err := b.Events(ctx, session, after, func(e userapi.Event) error {
		if got = append(got, e); len(got) == n {
			return errEnough
		}
		return nil
	})
	require.ErrorIs(t, err, errEnough)
	return got
}

// B-1: a reader gets every committed event once, in order, from any position on,
// over more than one page, and goes on with what is committed later.
func TestEventStream(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	agent.Append(t, wire.EventTurnStarted, "t-1", wire.TurnStarted{Key: "key"})
	updates(t, agent, 449)
	b.position(t, id, 450)
	events := b.follow(t, id, 0, 450)
	for i, e := range events {
		require.EqualValues(t, i+1, e.Position)
		require.EqualValues(t, i+1, e.Seq)
		require.Equal(t, "instance-"+id, e.InstanceID)
	}
	require.Equal(t, "turn_started", events[0].Kind)
	require.Equal(t, "t-1", events[0].TurnID)
	require.JSONEq(t, `{"key":"key"}`, string(events[0].Payload))
	require.False(t, events[0].At.IsZero())
	require.EqualValues(t, 401, b.follow(t, id, 400, 50)[0].Position)

	live := make(chan []userapi.Event, 1)
	go func() { live <- b.follow(t, id, 450, 20) }()
	updates(t, agent, 20)
	got := <-live
	require.EqualValues(t, 451, got[0].Position)
	require.EqualValues(t, 470, got[19].Position)
}

// raw opens an event stream as bytes.
func (b *bench) raw(t *testing.T, session, query string, header http.Header) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+b.address+strings.Replace(userapi.RouteEvents, "{id}", session, 1)+query, nil)
	require.NoError(t, err)
	req.Header = header
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, resp.Body.Close()) })
	return resp
}

func nextLine(t *testing.T, from *bufio.Reader) string {
	t.Helper()
	line, err := from.ReadString('\n')
	require.NoError(t, err)
	return line
}

// A stream is server-sent events as browsers and curl know them: with ids to go on
// from, and comments while nothing happens.
func TestEventStreamFormat(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	updates(t, agent, 3)
	b.position(t, id, 3)
	resp := b.raw(t, id, "", http.Header{"Last-Event-Id": {"2"}})
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewReader(resp.Body)
	require.Equal(t, "id: 3\n", nextLine(t, lines))
	require.Equal(t, "event: update\n", nextLine(t, lines))
	require.Contains(t, nextLine(t, lines), `data: {"position":3,`)
	require.Equal(t, "\n", nextLine(t, lines))
	require.True(t, strings.HasPrefix(nextLine(t, lines), ":"), "a heartbeat")
}

// A reader that reads nothing for a while misses nothing, and neither the pump nor
// another reader waits for it.
func TestSlowReader(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	resp := b.raw(t, id, "?after=0", nil)
	const n, size = 120, 60_000 // more than the sockets between them hold
	text := strings.Repeat("x", size)
	for range n {
		agent.Append(t, wire.EventUpdate, "", map[string]string{"text": text})
	}
	b.position(t, id, n)
	require.Len(t, b.follow(t, id, 0, n), n)

	lines, seen := bufio.NewReader(resp.Body), 0
	for seen < n {
		line := nextLine(t, lines)
		if strings.HasPrefix(line, "data: ") {
			seen++
			require.Greater(t, len(line), size)
		}
	}
}

func TestEventStreamsThatCannotWork(t *testing.T) {
	b := serve(t)
	id, _ := b.running(t)
	for _, query := range []string{"?after=-1", "?after=x", "?after=9223372036854775808"} {
		status, code := b.request(t, http.MethodGet, "/api/v1/sessions/"+id+"/events"+query, "", nil)
		require.Equal(t, 400, status)
		require.Equal(t, userapi.CodeBadRequest, code)
	}
	err := b.Events(t.Context(), "other", 0, func(userapi.Event) error { return nil })
	refused(t, userapi.CodeNotFound, err)
}
