package server_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
)

const (
	// stalls is after how long a reader that takes nothing costs a request.
	stalls = 5 * time.Second
	// slow is for what takes seconds by itself on a machine that is busy.
	slow = 2 * time.Minute
)

// S-001.9: a client that is attached and takes nothing costs an agent its
// permission request: the agent is told so, the record has it, an answer comes
// too late, and the stream that takes over sees all of it.
func TestStalledReaderCancelsTheRequest(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{"ask", "burst"} {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			r := startWith(t, setup{bytes: 16 << 20})
			c, credential := r.own(t)
			createReady(t, c, "i", nil)
			stalled, _ := attachDeaf(t, r, credential)
			began := time.Now()
			_, err := c.Prompt(t.Context(), "i", "k", say(prompt))
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				kept, err := c.TurnOutcome(t.Context(), "i")
				return err == nil && kept.Outcome != nil && kept.Outcome.StopReason == "end_turn"
			}, slow, 20*time.Millisecond, "the agent waits for its answer")
			require.GreaterOrEqual(t, time.Since(began), stalls)

			events := commitAll(t, attach(t, c, "i", 0), wire.EventTurnEnded)
			settled := events[len(events)-2]
			require.Equal(t, wire.EventPermissionSettled, settled.Kind)
			var how wire.PermissionSettled
			require.NoError(t, json.Unmarshal(settled.Payload, &how))
			require.True(t, how.Cancelled)
			requireCode(t, wire.CodeSettled,
				c.AnswerPermission(t.Context(), "i", how.RequestID, wire.PermissionAnswer{OptionID: "yes"}))
			require.NoError(t, stalled.CloseNow())
		})
	}
}

// S-001.9: a client that takes what it gets and acknowledges nothing is slow, not
// stalled: the window stays shut, the request behind it is outstanding, and is
// answered once the commits have come.
func TestSlowCommitsKeepTheRequest(t *testing.T) {
	t.Parallel()
	r := startWith(t, setup{bytes: 16 << 20})
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	stream := attach(t, c, "i", 0)
	_, err := c.Prompt(t.Context(), "i", "k", say("burst"))
	require.NoError(t, err)
	batches := make(chan []wire.Event, 100)
	go func() {
		defer close(batches)
		for {
			batch, err := stream.Next(context.Background())
			if err != nil {
				return // the test closes the stream
			}
			batches <- batch
		}
	}()
	const all = 35 // a start, 33 updates, a request
	require.Eventually(t, func() bool {
		list, err := c.List(t.Context())
		return err == nil && list[0].LastSeq == all
	}, slow, 20*time.Millisecond)
	<-time.After(stalls + stalls/2)
	list, err := c.List(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, all, list[0].LastSeq, "nothing was settled")

	var last wire.Event
	for last.Kind != wire.EventPermissionRequest {
		select {
		case batch := <-batches:
			require.NotEmpty(t, batch, "the stream ended")
			require.Equal(t, last.Seq+1, batch[0].Seq)
			last = batch[len(batch)-1]
			require.NoError(t, stream.Ack(t.Context(), last.Seq))
		case <-time.After(slow):
			t.Fatal("the request was not announced")
		}
	}
	id := permissionID(t, []wire.Event{last})
	require.NoError(t, c.AnswerPermission(t.Context(), "i", id, wire.PermissionAnswer{OptionID: "yes"}))
	require.NoError(t, stream.Close())
	for range batches { // until the reader has ended
	}
}

// S-001.6: a client that takes nothing is detached, also while what it was sent
// fits into the buffers in between: it answers no ping.
func TestDeafReaderIsDetached(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, credential := r.own(t)
	createReady(t, c, "i", nil)
	deaf, socket := attachDeaf(t, r, credential)
	_, err := c.Prompt(t.Context(), "i", "k", say("hello"))
	require.NoError(t, err)
	require.NoError(t, socket.SetReadDeadline(time.Now().Add(slow)))
	_, err = io.Copy(io.Discard, socket)
	require.NoError(t, err, "the server closes the connection")
	require.NoError(t, deaf.CloseNow())
}

// attachDeaf opens the stream of instance i, and reads nothing of it. What
// arrives can be seen at the socket.
func attachDeaf(t *testing.T, r *running, credential string) (_ *websocket.Conn, socket net.Conn) {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				err = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				socket = conn
			}
			return conn, err
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	conn, _, err := websocket.Dial(t.Context(), "wss://"+r.Endpoint()+"/api/v1/instances/i/events?after=0",
		&websocket.DialOptions{
			HTTPClient: &http.Client{Transport: transport},
			HTTPHeader: http.Header{wire.HeaderCredential: {"Bearer " + credential}},
		})
	require.NoError(t, err)
	return conn, socket
}

// commitAll takes and acknowledges everything up to an event of the kind.
func commitAll(t *testing.T, s *client.EventStream, last wire.EventKind) []wire.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), slow)
	defer cancel()
	var all []wire.Event
	for len(all) == 0 || all[len(all)-1].Kind != last {
		batch, err := s.Next(ctx)
		require.NoError(t, err)
		all = append(all, batch...)
		require.NoError(t, s.Ack(ctx, all[len(all)-1].Seq))
	}
	return all
}
