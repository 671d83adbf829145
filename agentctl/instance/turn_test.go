//go:build unix

package instance

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// B-17: a key opens one turn ever, and the agent's log has one prompt for it.
func TestPromptIsIdempotent(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one")
	first := a.prompt("k1", "hang")
	require.True(t, first.Open)
	require.Equal(t, first, a.prompt("k1", "hang"))
	require.Equal(t, first.TurnID, a.view().OpenTurnID)
	require.Equal(t, "k1", a.view().OpenTurnKey)
	_, err := s.Prompt("one", "k2", promptOf("say 1"))
	requireCode(t, wire.CodeTurnOpen, err)

	require.NoError(t, s.Cancel("one"))
	outcome := a.awaitOutcome(first.TurnID)
	require.Equal(t, "cancelled", outcome.StopReason)
	require.Equal(t, "k1", outcome.Key)
	require.Equal(t, wire.Turn{TurnID: first.TurnID}, a.prompt("k1", "hang"))
	require.Empty(t, a.view().OpenTurnID)

	second := a.prompt("k2", "say 1")
	require.NotEqual(t, first.TurnID, second.TurnID)
	a.awaitOutcome(second.TurnID)
	// The agent may note a cancellation before the prompt that it ends.
	require.ElementsMatch(t, []string{"initialize", "new", "prompt:hang", "cancel", "prompt:say"}, a.calls())
	requireCode(t, wire.CodeNoTurn, s.Cancel("one"))
}

func TestPromptRefuses(t *testing.T) {
	s := newTestSupervisor(t, nil)
	started(t, s, "one")
	for name, call := range map[string]func() (wire.Turn, error){
		"no key":    func() (wire.Turn, error) { return s.Prompt("one", "", promptOf("say 1")) },
		"no blocks": func() (wire.Turn, error) { return s.Prompt("one", "k", wire.PromptRequest{}) },
		"no JSON": func() (wire.Turn, error) {
			return s.Prompt("one", "k", wire.PromptRequest{Blocks: []json.RawMessage{[]byte("{")}})
		},
	} {
		_, err := call()
		require.ErrorIs(t, err, &wire.Error{Code: wire.CodeBadRequest}, name)
	}
}

// S-004.1, S-004.6: the last outcome is kept under a turn id that no other
// instance uses, until it is acknowledged by that id; reading keeps it.
func TestOutcomeIsKeptUntilAcknowledged(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a, b := started(t, s, "one"), started(t, s, "two")
	none, err := s.TurnOutcome("one")
	require.NoError(t, err)
	require.Nil(t, none.Outcome)

	first := a.prompt("k", "say 1")
	other := b.prompt("k", "say 1")
	require.NotEqual(t, first.TurnID, other.TurnID)
	require.Equal(t, "end_turn", a.awaitOutcome(first.TurnID).StopReason)
	b.awaitOutcome(other.TurnID)

	require.NoError(t, s.AckTurnOutcome("one", other.TurnID), "an unknown id changes nothing")
	a.awaitOutcome(first.TurnID)
	second := a.prompt("k2", "say 1")
	a.awaitOutcome(second.TurnID)
	require.NoError(t, s.AckTurnOutcome("one", first.TurnID), "an earlier turn's id changes nothing")
	a.awaitOutcome(second.TurnID)
	for range 2 {
		require.NoError(t, s.AckTurnOutcome("one", second.TurnID))
		none, err = s.TurnOutcome("one")
		require.NoError(t, err)
		require.Nil(t, none.Outcome)
	}
}

func TestPermissionIsAnsweredOnce(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one")
	turn := a.prompt("k", "ask")
	asked := a.asked()

	requireCode(t, wire.CodeNotFound, s.AnswerPermission("one", "unknown", wire.PermissionAnswer{OptionID: "yes"}))
	for _, bad := range []wire.PermissionAnswer{{}, {OptionID: "yes", Cancelled: true}, {OptionID: "no such option"}} {
		requireCode(t, wire.CodeBadRequest, s.AnswerPermission("one", asked.RequestID, bad))
	}
	require.NoError(t, s.AnswerPermission("one", asked.RequestID, wire.PermissionAnswer{OptionID: "yes"}))
	requireCode(t, wire.CodeSettled, s.AnswerPermission("one", asked.RequestID, wire.PermissionAnswer{OptionID: "yes"}))
	a.awaitOutcome(turn.TurnID)
	require.Contains(t, a.calls(), "answer:yes")
}

// S-001.9: cancelling the turn answers its outstanding request as cancelled, which
// the agent hears, and settles it for everybody else.
func TestCancelAnswersThePermission(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one")
	turn := a.prompt("k", "ask")
	asked := a.asked()
	require.NoError(t, s.Cancel("one"))
	require.Empty(t, a.awaitOutcome(turn.TurnID).Error)
	require.Contains(t, a.calls(), "answer:cancelled")
	requireCode(t, wire.CodeSettled, s.AnswerPermission("one", asked.RequestID, wire.PermissionAnswer{OptionID: "yes"}))
	events := a.read(0, wire.EventTurnEnded)
	require.Equal(t, wire.EventPermissionSettled, events[2].Kind)
	require.Contains(t, string(events[2].Payload), `"cancelled":true`)
}

// B-10: an agent that writes much to its standard error is not blocked by it.
func TestStandardErrorIsDrained(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one")
	turn := a.prompt("k", "babble 1000000")
	a.awaitOutcome(turn.TurnID)
	i, err := s.find("one")
	require.NoError(t, err)
	eventually(t, func() bool {
		i.stderr.mu.Lock()
		defer i.stderr.mu.Unlock()
		return len(i.stderr.kept) == stderrBytes
	})
}

func TestTailKeepsTheNewest(t *testing.T) {
	var kept tail
	for _, chunk := range []string{"old", string(make([]byte, stderrBytes-2)), "new"} {
		n, err := kept.Write([]byte(chunk))
		require.NoError(t, err)
		require.Equal(t, len(chunk), n)
	}
	require.Len(t, kept.kept, stderrBytes)
	require.Equal(t, "new", string(kept.kept[stderrBytes-3:]))
}

func TestSanitize(t *testing.T) {
	for message, want := range map[string]string{
		"plain words":                               "plain words",
		"open /home/u/.npmrc: denied":               "open [path] denied",
		`in C:\Users\u`:                             "in [path]",
		"GET https://registry.example/x failed":     "GET [path] failed",
		"connect 10.0.0.7:4873 refused":             "connect [address] refused",
		"connect localhost:4873 refused":            "connect [address] refused",
		"connect [::1]:4873 refused":                "connect [address] refused",
		"host registry.example.org unknown":         "host [address] unknown",
		"user u@example.org":                        "user [address]",
		"key sk_live_0123456789abcdef0123 rejected": "key [id] rejected",
		"two\nlines\x1b[31m":                        "two lines [31m",
		"":                                          "",
	} {
		require.Equal(t, want, sanitize(message))
	}
	long := make([]rune, 0, 1000)
	for range 500 {
		long = append(long, 'é', ' ')
	}
	require.Len(t, []rune(sanitize(string(long))), causeRunes+1)
}
