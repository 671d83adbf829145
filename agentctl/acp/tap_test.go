package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// B-9: noise of every sort costs no frame, is reported by its size only, merged,
// and shows in no log.
func TestNoise(t *testing.T) {
	var global bytes.Buffer
	previous := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&global, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(previous) })

	s := open(t)
	prompt := s.prompt("t-1")
	s.say("hush hush\n")
	s.update(1)
	s.say("\x1b[31m hush {\"x\": \n\r\n\n")
	s.say(`hush`+updateLine+"\r\n", 2)
	s.say(`{"jsonrpc":"2.0","id":77,"result":"hush"}` + "\n") // answers nothing
	s.say(`{"jsonrpc":"2.0","method":"_hush"}` + "\n")
	s.reply(prompt, `{"stopReason":"end_turn"}`)
	s.awaitEnd()
	s.say("hush")
	s.agent.Close()

	s.awaitKinds("turn_started", "noise", "update", "update", "noise", "turn_ended", "noise")
	var sizes []int
	for _, e := range s.recorded(wire.EventNoise) {
		var n wire.Noise
		require.NoError(t, json.Unmarshal(e.Payload, &n))
		sizes = append(sizes, n.Bytes)
	}
	require.Equal(t, []int{9, 16 + 4, 4}, sizes)
	require.NotContains(t, s.logged()+global.String(), "hush")
	require.Empty(t, global.String())
}

// Noise between frames is reported at most once a second.
func TestNoiseIsPaced(t *testing.T) {
	now := epoch
	s := open(t, func(c *Config) { c.Clock = func() time.Time { return now } })
	for n := range 50 {
		s.say("noise\n")
		s.update(n)
	}
	s.eventually(func() bool { return len(s.recorded(wire.EventUpdate)) == 50 })
	require.Len(t, s.recorded(wire.EventNoise), 1)
}

// Payloads are valid JSON in valid UTF-8 whatever the agent writes.
func TestInvalidUTF8(t *testing.T) {
	s := open(t)
	s.say("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"x\":\"\xff\"}}\n")
	s.awaitKinds("update")
	require.Equal(t, "{\"x\":\"\uFFFD\"}", string(s.notes.all()[0].Payload))
}

// The agent is offered nothing and gets an answer to everything it asks for;
// notifications far beyond the SDK's queue end nothing.
func TestUnknownRequestsAndNotifications(t *testing.T) {
	s := open(t)
	for range 3000 {
		s.say(`{"jsonrpc":"2.0","method":"_x","params":{}}` + "\n")
	}
	s.refusesAndGoesOn("fs/read_text_file")
}

// refusesAndGoesOn checks that a request is refused as unknown, and that a turn
// can begin after it.
func (s *script) refusesAndGoesOn(method string) {
	s.t.Helper()
	s.say(`{"jsonrpc":"2.0","id":"q","method":%q,"params":{}}`+"\n", method)
	answer := s.hear("")
	require.Equal(s.t, `"q"`, string(answer.ID))
	require.Contains(s.t, string(answer.Error), "-32601")
	s.prompt("t-1")
	s.awaitKinds("turn_started")
}

const small = 4 << 10 // frame bound in tests of oversized frames

func smallFrames(c *Config) { c.MaxFrame = small }

var large = strings.Repeat("x", 10*small)

// B-8: an update that is too large is replaced by a mark, a request is refused,
// and the conversation goes on.
func TestOversizedUpdateAndRequest(t *testing.T) {
	s := open(t, smallFrames)
	prompt := s.prompt("t-1")
	s.update(1)
	line := `{"jsonrpc":"2.0","params":{"id":4,"x":"` + large + `"},"method":"session/update"}` + "\n"
	s.say("%s", line)
	s.say(`{"jsonrpc":"2.0","id":4,"method":"fs/write_text_file","params":{"x":"%s"}}`+"\n", large)
	refused := s.hear("")
	require.Equal(t, "4", string(refused.ID))
	require.Contains(t, string(refused.Error), "-32600")
	s.say(`{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"x":"%s"}}`+"\n", large)
	require.Contains(t, string(s.hear("").Error), "-32600")
	s.say("%s\n", large)
	s.update(2)
	s.reply(prompt, `{"stopReason":"end_turn"}`)
	require.Empty(t, s.awaitEnd().Error)

	s.awaitKinds("turn_started", "update", "truncated", "truncated", "noise", "update", "turn_ended")
	truncated := s.recorded(wire.EventTruncated)
	require.JSONEq(t, jsonf(`{"kind":"update","bytes":%d}`, len(line)), string(truncated[0].Payload))
	require.Equal(t, "t-1", truncated[0].TurnID)
	require.Contains(t, string(truncated[1].Payload), `"kind":"permission_request"`)
}

// B-8: an oversized response fails the call it answers, a prompt's as well.
func TestOversizedResponse(t *testing.T) {
	s := start(t, smallFrames)
	opened := make(chan error, 1)
	go func() {
		_, err := s.agent.NewSession(context.Background(), "/w")
		opened <- err
	}()
	s.say(`{"jsonrpc":"2.0","result":{"sessionId":"%s"},"id":%s}`+"\n", large, s.hear("session/new").ID)
	var refusal *CallError
	require.ErrorAs(t, <-opened, &refusal)

	s = open(t, smallFrames)
	prompt := s.prompt("t-1")
	s.reply(prompt, `{"stopReason":"end_turn","_meta":"`+large+`"}`)
	require.Equal(t, ErrorOversized, s.awaitEnd().Error)
	s.prompt("t-2")
}

// A frame of the default bound passes whole.
func TestLargeFramePasses(t *testing.T) {
	s := open(t)
	payload := `{"x":"` + strings.Repeat("y", DefaultMaxFrame-200) + `"}`
	s.say(`{"jsonrpc":"2.0","method":"session/update","params":%s}`+"\n", payload)
	s.awaitKinds("update")
	require.Len(t, s.notes.all()[0].Payload, len(payload))
}

// B-18: what an agent replays while a conversation is reopened is not recorded
// and never pauses, so that the answer behind it arrives; what follows is new.
func TestReplayIsNotRecorded(t *testing.T) {
	for method, reopen := range map[string]func(*Agent) error{
		"session/load":   func(a *Agent) error { return a.LoadSession(context.Background(), "/w", "old") },
		"session/resume": func(a *Agent) error { return a.ResumeSession(context.Background(), "/w", "old") },
	} {
		s := start(t, smallFrames)
		s.notes.pause()
		opened := make(chan error, 1)
		go func() { opened <- reopen(s.agent) }()
		request := s.hear(method)
		require.Contains(t, string(request.Params), `"sessionId":"old"`)
		for n := range 2000 {
			s.update(n)
		}
		s.say(`{"jsonrpc":"2.0","method":"session/update","params":"%s"}`+"\n", large)
		s.reply(request, `null`)
		require.NoError(t, <-opened)
		s.notes.resume()
		s.update(1)
		s.awaitKinds("update")
		require.Contains(t, string(s.prompt("t-1").Params), `"sessionId":"old"`)
	}
}

// The calls that open a conversation say what the agent offers, and how they
// failed, without the agent's text.
func TestCalls(t *testing.T) {
	s := start(t)
	type result struct {
		caps Capabilities
		err  error
	}
	initialize := func(ctx context.Context, answer string) result {
		got := make(chan result, 1)
		go func() {
			caps, err := s.agent.Initialize(ctx)
			got <- result{caps, err}
		}()
		m := s.hear("initialize")
		require.NotContains(t, string(m.Params), "true", "nothing is offered")
		if answer != "" {
			s.say(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
		}
		return <-got
	}
	require.Equal(t, result{Capabilities{true, true}, nil}, initialize(context.Background(),
		`"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}`))
	require.Equal(t, result{}, initialize(context.Background(), `"result":{"protocolVersion":1}`))
	require.ErrorIs(t, initialize(context.Background(), `"result":{"protocolVersion":2}`).err, ErrProtocol)

	err := initialize(context.Background(), `"error":{"code":-32000,"message":"see /secret"}`).err
	var refusal *CallError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, CallError{Method: "initialize", Code: -32000, Message: "see /secret"}, *refusal)
	require.NotContains(t, err.Error(), "secret")

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, initialize(ctx, "").err, context.DeadlineExceeded)
	s.hear("$/cancel_request")
}

// An agent that ends before it answers, or was over before it was asked, is told
// apart from one that refuses.
func TestCallsOfAnEndedAgent(t *testing.T) {
	s := start(t)
	failed := make(chan error, 1)
	go func() {
		_, err := s.agent.NewSession(context.Background(), "/w")
		failed <- err
	}()
	s.hear("session/new")
	require.NoError(t, s.out.Close())
	require.ErrorIs(t, <-failed, ErrExited)
	s.awaitDone()
	go io.Copy(io.Discard, s.in)
	require.ErrorIs(t, s.agent.LoadSession(context.Background(), "/w", "x"), ErrExited)
}

// A session without an id is none.
func TestNewSessionWithoutID(t *testing.T) {
	s := start(t)
	failed := make(chan error, 1)
	go func() {
		_, err := s.agent.NewSession(context.Background(), "/w")
		failed <- err
	}()
	s.reply(s.hear("session/new"), `{}`)
	require.ErrorIs(t, <-failed, ErrProtocol)
}
