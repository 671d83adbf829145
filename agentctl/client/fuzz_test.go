package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// FuzzEvents, B-1, B-9: whatever a server sends in place of events, the client
// returns just what it says, or ends the stream as one that did not answer; it
// neither waits for more nor takes half of it.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"", "null", "[]", "{}", "\x00", "\xff\xfe", "\x1b[0m{}", "{}\r\n", `{"type":"events"}`, `{"type":"events","events":[]}`,
		`{"type":"events","events":[null]}`, `{"type":"hello","first":1,"next":1}`, `{"type":"gap","first":9,"next":1}`,
		`{"type":"events","events":[{"seq":1,"kind":"update","at":"2024-02-03T04:05:06Z","payload":{"a":"\u0000\ud800` + "\xff" + `"}}]}`,
		`{"type":"events","events":[{"seq":1e999}]}`, `{"type":"events","events":[{"seq":9223372036854775808}]}`,
		`{"type":"events","events":[{"seq":2,"at":"yesterday"}]}`, `{"type":"events","events":[{"seq":1,"payload":`,
		`{"type":"events","events":[{"seq":3,"kind":"turn_ended","payload":{"turn_id":7}},{"seq":1}]}{"type":"events"}`,
	} {
		f.Add([]byte(seed))
	}
	frames := make(chan []byte, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // the client has gone
		}
		defer conn.CloseNow()
		for _, frame := range [][]byte{[]byte(`{"type":"hello","first":1,"next":1}`), <-frames} {
			if conn.Write(r.Context(), websocket.MessageText, frame) != nil {
				return
			}
		}
		<-conn.CloseRead(r.Context()).Done()
	}))
	f.Cleanup(server.Close)
	c := client.New(client.Config{
		Endpoint: server.Listener.Addr().String(), Fingerprint: credential.Fingerprint(server.Certificate().Raw), HTTPTimeout: time.Minute,
	})
	f.Cleanup(c.Close)

	f.Fuzz(func(t *testing.T, sent []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		frames <- sent
		stream, err := c.Events(ctx, "i", 0)
		require.NoError(t, err)
		events, err := stream.Next(ctx)
		require.NoError(t, ctx.Err(), "it waits")
		var frame wire.ServerFrame
		readable := json.Unmarshal(sent, &frame) == nil && frame.Type == wire.FrameEvents && len(frame.Events) > 0
		require.Equal(t, readable, err == nil, "%v", err)
		if readable {
			require.Equal(t, frame.Events, events)
			require.NoError(t, stream.Close())
			return
		}
		require.True(t, errors.Is(err, client.ErrNoAnswer), "%v", err)
		_, err = stream.Next(ctx)
		require.Error(t, err, "the stream has ended")
	})
}
