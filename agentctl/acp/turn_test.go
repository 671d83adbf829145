package acp

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// B-9: updates, a permission request after many of them, its settlement and the
// turn's end are recorded in the order of the agent's lines; updates carry their
// turn and the bytes that the agent wrote.
func TestOrderOfATurn(t *testing.T) {
	const updates = 500
	s := open(t)
	prompt := s.prompt("t-1")
	for n := range updates {
		s.update(n)
	}
	id := s.ask("7")
	require.NoError(t, s.agent.AnswerPermission(id, wire.PermissionAnswer{OptionID: "yes"}))
	require.JSONEq(t, `{"outcome":{"outcome":"selected","optionId":"yes"}}`, string(s.hear("").Result))
	s.say(`{"jsonrpc":"2.0","method":"session/update","params":{"odd" :  1.50}}` + "\n")
	s.reply(prompt, `{"stopReason":"end_turn"}`)
	require.Equal(t, wire.TurnOutcome{TurnID: "t-1", Key: "key-t-1", StopReason: "end_turn", EndedAt: epoch}, s.awaitEnd())
	s.update(updates)
	s.eventually(func() bool { return len(s.notes.all()) == updates+6 })

	events := s.notes.all()
	require.Equal(t, wire.EventTurnStarted, events[0].Kind)
	require.JSONEq(t, `{"key":"key-t-1"}`, string(events[0].Payload))
	for n, e := range events[1 : updates+1] {
		require.Equal(t, wire.EventUpdate, e.Kind)
		require.JSONEq(t, jsonf(`{"n":%d}`, n), string(e.Payload))
		require.Equal(t, "t-1", e.TurnID)
	}
	tail := events[updates+1:]
	require.Equal(t, wire.EventPermissionRequest, tail[0].Kind)
	require.JSONEq(t, jsonf(`{"request_id":%q,"params":{"options":[{"optionId":"yes"},{"optionId":"no"}]}}`, id), string(tail[0].Payload))
	require.Equal(t, wire.EventPermissionSettled, tail[1].Kind)
	require.JSONEq(t, jsonf(`{"request_id":%q,"option_id":"yes"}`, id), string(tail[1].Payload))
	require.Equal(t, `{"odd" :  1.50}`, string(tail[2].Payload))
	require.Equal(t, wire.EventTurnEnded, tail[3].Kind)
	require.JSONEq(t, `{"turn_id":"t-1","key":"key-t-1","stop_reason":"end_turn","ended_at":"2024-02-03T04:05:06Z"}`, string(tail[3].Payload))
	require.Empty(t, tail[4].TurnID, "after the turn")
}

// Content blocks reach the agent as they were given, with members that this
// client does not know.
func TestPromptBlocks(t *testing.T) {
	s := open(t)
	block := `{"type":"future","x":{"y":[1,2.50,null]}}`
	require.NoError(t, s.agent.Prompt("t-1", "k", []json.RawMessage{[]byte(block)}))
	require.Equal(t, `{"sessionId":"sess","prompt":[`+block+`]}`, string(s.hear("session/prompt").Params))
}

// One turn at a time; a prompt that is refused leaves nothing behind.
func TestPromptRefusals(t *testing.T) {
	s := start(t)
	blocks := []json.RawMessage{[]byte(`{}`)}
	require.ErrorIs(t, s.agent.Prompt("t-1", "k", blocks), ErrNotReady)
	require.ErrorIs(t, s.agent.Cancel(), ErrNoTurn)

	s = open(t)
	require.ErrorIs(t, s.agent.Prompt("t-1", "k", nil), ErrBadPrompt)
	require.ErrorIs(t, s.agent.Prompt("t-1", "k", []json.RawMessage{[]byte(`{`)}), ErrBadPrompt)
	prompt := s.prompt("t-2")
	require.ErrorIs(t, s.agent.Prompt("t-3", "k", blocks), ErrTurnOpen)
	s.reply(prompt, `{"stopReason":"end_turn"}`)
	s.awaitEnd()
	s.prompt("t-4")
	s.awaitKinds("turn_started", "turn_ended", "turn_started")
}

// S-004.4: what an agent says again, late or twice, about a turn that is over
// touches neither that turn nor the one after it.
func TestLateStopReasons(t *testing.T) {
	s := open(t)
	first := s.prompt("t-1")
	require.NoError(t, s.agent.Cancel())
	s.hear("session/cancel")
	s.reply(first, `{"stopReason":"cancelled"}`)
	require.Equal(t, "t-1", s.awaitEnd().TurnID)
	s.reply(first, `{"stopReason":"end_turn"}`)

	second := s.prompt("t-2")
	s.reply(first, `{"stopReason":"cancelled"}`)
	s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"cancelled"}}`+"\n", first.ID)
	s.update(1)
	s.awaitKinds("turn_started", "turn_ended", "turn_started", "update")
	require.Empty(t, s.ended)
	require.ErrorIs(t, s.agent.Prompt("t-3", "k", []json.RawMessage{[]byte(`{}`)}), ErrTurnOpen)

	s.reply(second, `{"stopReason":"end_turn"}`)
	end := s.awaitEnd()
	require.Equal(t, "t-2", end.TurnID)
	require.Equal(t, "end_turn", end.StopReason)
	s.reply(second, `{"stopReason":"cancelled"}`)
	s.reply(s.prompt("t-3"), `{"stopReason":"refusal"}`)
	require.Equal(t, "t-3", s.awaitEnd().TurnID)
	s.awaitKinds("turn_started", "turn_ended", "turn_started", "update", "turn_ended", "turn_started", "turn_ended")
}

// A failed turn ends with a word and the agent's code, never with its text.
func TestFailedTurns(t *testing.T) {
	for answer, want := range map[string]string{
		`"error":{"code":-32000,"message":"see /home/secret"}`: "agent_error:-32000",
		`"error":"no object"`:                            ErrorMalformed,
		`"result":{}`:                                    ErrorMalformed,
		`"result":null`:                                  ErrorMalformed,
		`"result":[],"error":null`:                       ErrorMalformed,
		`"result":{"stopReason":7}`:                      ErrorMalformed,
		`"result":{"stopReason":"refusal"},"error":null`: "",
	} {
		s := open(t)
		prompt := s.prompt("t-1")
		s.say(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", prompt.ID, answer)
		o := s.awaitEnd()
		require.Equal(t, want, o.Error, answer)
		require.Equal(t, want == "", o.StopReason == "refusal", answer)
		require.NotContains(t, s.logged(), "secret")
	}
}

// S-004.1: a turn that is open when the agent ends, ends exactly once, as
// agent_exited, after everything that the agent said.
func TestAgentExitsInATurn(t *testing.T) {
	s := open(t)
	s.prompt("t-1")
	id := s.ask("1")
	s.say(`{"jsonrpc":"2.0","method":"session/update","params":{"last":true}}`) // no line end
	require.NoError(t, s.out.Close())
	require.Equal(t, wire.TurnOutcome{TurnID: "t-1", Key: "key-t-1", Error: ErrorAgentExited, EndedAt: epoch}, s.awaitEnd())
	s.awaitDone()
	s.awaitKinds("turn_started", "permission_request", "update", "permission_settled", "turn_ended")
	require.ErrorIs(t, s.agent.AnswerPermission(id, wire.PermissionAnswer{OptionID: "yes"}), ErrPermissionSettled)
	require.ErrorIs(t, s.agent.Prompt("t-2", "k", []json.RawMessage{[]byte(`{}`)}), ErrNotReady)
	s.agent.Close()
	require.Empty(t, s.ended)
}

// S-001.10: closing ends the open turn once, settles what is outstanding, tells
// the agent, and returns though the recorder blocks.
func TestCloseInATurn(t *testing.T) {
	s := open(t)
	s.prompt("t-1")
	s.ask("1")
	s.notes.pause()
	s.update(1)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.agent.Close()
	}()
	require.JSONEq(t, `{"outcome":{"outcome":"cancelled"}}`, string(s.hear("").Result))
	s.hear("end of input")
	s.awaitDone()
	require.Equal(t, ErrorAgentExited, s.awaitEnd().Error)
	s.soon("Close", func() { <-closed })
	s.agent.Close()
	require.Empty(t, s.ended)
}

// A turn's end is told even if it cannot be recorded any more.
func TestTurnEndsWithoutRecorder(t *testing.T) {
	s := open(t)
	prompt := s.prompt("t-1")
	s.notes.close()
	s.update(1)
	s.reply(prompt, `{"stopReason":"end_turn"}`)
	require.Equal(t, "end_turn", s.awaitEnd().StopReason)
	require.Len(t, s.logs.FilterMessage("agent_events_not_recorded").All(), 1)
}

// S-001.6: a recorder that blocks stops the reading, so that the agent blocks
// far beyond what the SDK would queue; nothing is lost, and neither cancelling
// nor answering waits for it.
func TestPausedRecorderBlocksAgent(t *testing.T) {
	const updates = 5000
	s := open(t)
	prompt := s.prompt("t-1")
	id := s.ask("1")
	s.awaitKinds("turn_started", "permission_request")
	s.notes.pause()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for n := range updates {
			s.update(n)
		}
		s.reply(prompt, `{"stopReason":"cancelled"}`)
	}()
	s.soon("AnswerPermission", func() {
		require.NoError(t, s.agent.AnswerPermission(id, wire.PermissionAnswer{OptionID: "no"}))
	})
	s.hear("")
	s.soon("Cancel", func() { require.NoError(t, s.agent.Cancel()) })
	s.hear("session/cancel")
	select {
	case <-written:
		t.Fatal("the agent was not blocked")
	default:
	}
	require.Len(t, s.notes.all(), 2)

	s.notes.resume()
	<-written
	s.awaitEnd()
	events := s.notes.all()
	require.Len(t, events, updates+4)
	var seen int
	for _, e := range events {
		if e.Kind == wire.EventUpdate {
			require.JSONEq(t, jsonf(`{"n":%d}`, seen), string(e.Payload))
			seen++
		}
	}
	require.Equal(t, wire.EventTurnEnded, events[updates+3].Kind)
}

// An agent that does not read its input delays nobody: prompts are accepted,
// then refused, cancelling fails at once, and closing returns.
func TestAgentThatDoesNotRead(t *testing.T) {
	s := open(t)
	s.prompt("t-1")
	s.fillInput()
	s.soon("Cancel", func() { require.ErrorIs(t, s.agent.Cancel(), ErrInputStuck) })
	id := s.ask("1")
	require.ErrorIs(t, s.agent.AnswerPermission(id, wire.PermissionAnswer{OptionID: "yes"}), ErrInputStuck)
	s.soon("Close", s.agent.Close)
	require.Equal(t, ErrorAgentExited, s.awaitEnd().Error)
	require.ErrorIs(t, s.agent.AnswerPermission(id, wire.PermissionAnswer{OptionID: "yes"}), ErrPermissionSettled)
}

// An agent that closed its input but goes on talking is heard to its end.
func TestAgentThatClosedItsInput(t *testing.T) {
	s := open(t, func(c *Config) { c.Stdin = brokenAfter{c.Stdin, new(int)} })
	require.NoError(t, s.agent.Prompt("t-1", "k", []json.RawMessage{[]byte(`{}`)}))
	s.eventually(func() bool { return len(s.logs.FilterMessage("agent_input_closed").All()) == 1 })
	require.ErrorIs(t, s.agent.Cancel(), ErrNotReady)
	s.update(1)
	require.NoError(t, s.out.Close())
	require.Equal(t, ErrorAgentExited, s.awaitEnd().Error)
	s.awaitKinds("turn_started", "update", "turn_ended")
}

// brokenAfter fails from the second write on.
type brokenAfter struct {
	io.WriteCloser
	writes *int
}

func (b brokenAfter) Write(p []byte) (int, error) {
	if *b.writes++; *b.writes > 1 {
		return 0, io.ErrClosedPipe
	}
	return b.WriteCloser.Write(p)
}
