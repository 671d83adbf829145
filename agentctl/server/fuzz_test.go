package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/server"
	"github.com/kandev/recovery/agentctl/wire"
)

// garbage is no request of any route.
var garbage = []string{
	"", " ", "null", "true", "1e999", `"text"`, "[]", "{", `{"`, "{}{}", "\x00", "\xff\xfe",
	strings.Repeat("[", 20_000), `{"a":` + strings.Repeat(`{"a":`, 20_000),
}

// fuzzBody fuzzes the body of a route that expects a T.
func fuzzBody[T any](f *testing.F, pattern string, seeds ...string) {
	s := besiege(f)
	for _, seed := range append(seeds, garbage...) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { withstand[T](t, s, pattern, body) })
}

func FuzzProve(f *testing.F) {
	fuzzBody[wire.ProveRequest](f, "POST "+wire.RouteProve,
		`{"challenge":"`+strings.Repeat("A", 43)+`=","rotation_id":1,"endpoint":"127.0.0.1:1"}`,
		`{"challenge":"AAAA"}`, `{"challenge":1}`, `{"rotation_id":-1}`, `{"rotation_id":18446744073709551616}`)
}

func FuzzConfirm(f *testing.F) {
	fuzzBody[wire.ConfirmRequest](f, "POST "+wire.RouteConfirm,
		`{"rotation_id":1}`, `{"rotation_id":0}`, `{"rotation_id":2}`, `{"rotation_id":-1}`, `{"rotation_id":1.5}`,
		`{"rotation_id":"1"}`, `{"rotation_id":1,"rotation_id":18446744073709551615}`)
}

func FuzzCreate(f *testing.F) {
	fuzzBody[wire.CreateRequest](f, "PUT "+wire.RouteInstance,
		`{"session_id":"s","command":["c"],"roots":["/"],"mode":"new"}`,
		`{"session_id":"s","command":[""],"roots":["/"],"mode":"new"}`,
		`{"session_id":"s","command":["c"],"roots":["relative"],"mode":"load","provider_session_id":"p"}`,
		`{"session_id":"s","command":["c"],"roots":["/"],"mode":"new","env":{"A=B":"","":"x"}}`,
		`{"command":{}}`, `{"generation":1e30}`, `{"env":[]}`)
}

func FuzzStop(f *testing.F) {
	fuzzBody[wire.StopRequest](f, "DELETE "+wire.RouteInstance,
		`{"grace_ms":0}`, `{"grace_ms":-1}`, `{"grace_ms":600001}`, `{"grace_ms":9223372036854775807}`, `{"grace_ms":"1"}`)
}

func FuzzPrompt(f *testing.F) {
	fuzzBody[wire.PromptRequest](f, "PUT "+wire.RouteTurn,
		`{"blocks":[{"type":"text","text":"x"}]}`, `{"blocks":[]}`, `{"blocks":[null]}`, `{"blocks":{}}`)
}

func FuzzAnswerPermission(f *testing.F) {
	fuzzBody[wire.PermissionAnswer](f, "POST "+wire.RoutePermission,
		`{"option_id":"yes"}`, `{"cancelled":true}`, `{"option_id":"yes","cancelled":true}`, `{"cancelled":1}`)
}

func FuzzAckOutcome(f *testing.F) {
	fuzzBody[wire.AckOutcomeRequest](f, "POST "+wire.RouteAckOutcome,
		`{"turn_id":""}`, `{"turn_id":"another"}`, `{"turn_id":null}`, `{"turn_id":[]}`)
}

func FuzzWriteFile(f *testing.F) {
	fuzzBody[wire.WriteFile](f, "PUT "+wire.RouteFileContent,
		`{"path":"new","content":"eA=="}`, `{"path":"../out","content":"eA=="}`, `{"path":"/etc/x","content":"eA=="}`,
		`{"path":"file","content":"eA==","expect":"absent"}`, `{"path":"file","content":"?"}`, `{"root":-1,"path":"x"}`)
}

// FuzzHandshake: nothing but the nonce is exchanged, and nothing else spends it.
func FuzzHandshake(f *testing.F) {
	r := startWith(f, setup{logger: zap.NewNop()})
	raw := rawHTTP(f, r)
	for _, seed := range append([]string{`{"nonce":"wrong"}`, `{"nonce":""}`, `{"nonce":null}`, `{"nonce":1}`}, garbage...) {
		f.Add([]byte(seed))
	}
	f.Cleanup(func() {
		_, err := r.authority.Handshake(nonce)
		require.NoError(f, err, "the nonce was spent")
	})
	f.Fuzz(func(t *testing.T, body []byte) {
		code := raw.send(t, "POST "+wire.RouteHandshake, "", string(body))
		require.Contains(t, []wire.Code{wire.CodeBadRequest, wire.CodeTooLarge, wire.CodeUnauthenticated}, code)
	})
}

// FuzzCredential, O-001.2, O-002.6: nothing but a credential that was issued is
// taken for one, whatever the header holds.
func FuzzCredential(f *testing.F) {
	s := besiege(f)
	for _, seed := range []string{"", "Bearer", "Bearer ", "Bearer  x", "bearer x", "Basic x", "Bearer " + nonce, strings.Repeat("x", 8<<10)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if strings.ContainsFunc(header, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return // no HTTP client sends it
		}
		before := s.state(t)
		s.seconds.Add(1)
		for _, pattern := range s.Patterns() {
			switch pattern {
			case "GET " + wire.RouteHealth, "GET " + wire.RouteIdentity, "POST " + wire.RouteHandshake, "POST " + wire.RouteProve:
			default:
				require.Equal(t, wire.CodeUnauthenticated, s.raw.send(t, pattern, header, `{"rotation_id":1}`), pattern)
			}
		}
		require.Equal(t, before, s.state(t))
		require.NotZero(t, s.authority.SinceRenewal())
		require.Empty(t, s.authority.Reason())
	})
}

// FuzzAcknowledgement: what a client writes into its event stream discards no
// event that was not delivered, and ends the stream if it cannot be read.
func FuzzAcknowledgement(f *testing.F) {
	s := besiege(f)
	for _, seed := range append([]string{`{"ack":0}`, `{"ack":-1}`, `{"ack":9223372036854775807}`, `{"ack":1.5}`}, garbage...) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := s.state(t)
		var ack wire.ClientFrame
		unreadable := json.Unmarshal(frame, &ack) != nil
		if !unreadable && 0 < ack.Ack && ack.Ack <= before.Detail.LastSeq {
			return // it does discard, and may
		}
		conn := s.attach(t)
		defer conn.CloseNow()
		err := conn.Write(t.Context(), websocket.MessageText, frame)
		switch tooLarge := len(frame) > server.MaxClientFrame; {
		case tooLarge: // the server may hang up in the middle of it
			ended(t, conn)
		case unreadable || ack.Ack > 0:
			require.NoError(t, err)
			require.Equal(t, websocket.StatusPolicyViolation, ended(t, conn))
		default:
			require.NoError(t, err)
		}
		require.Equal(t, int64(1), attach(t, s.owner, "i", 0).Hello().First, "events were discarded")
		require.Equal(t, before, s.state(t))
	})
}

// attach opens the event stream below the client.
func (s *siege) attach(t *testing.T) *websocket.Conn {
	t.Helper()
	url := "wss://" + s.Endpoint() + strings.Replace(wire.RouteEvents, "{id}", "i", 1) + "?" + wire.QueryEventsAfter + "=0"
	conn, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{
		HTTPClient: s.raw.http, HTTPHeader: http.Header{wire.HeaderCredential: {"Bearer " + s.credential}},
	})
	require.NoError(t, err)
	return conn
}

// ended reads until the server closes, and returns with which code.
func ended(t *testing.T, conn *websocket.Conn) websocket.StatusCode {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for {
		if _, _, err := conn.Read(ctx); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}
