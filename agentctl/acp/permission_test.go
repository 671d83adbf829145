package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

func jsonf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// Only an outstanding request can be answered, once, with an option that the
// agent offered.
func TestAnswerPermission(t *testing.T) {
	s := open(t)
	s.prompt("t-1")
	id := s.ask(`"a"`)
	for _, bad := range []wire.PermissionAnswer{{}, {OptionID: "other"}, {OptionID: "yes", Cancelled: true}} {
		require.ErrorIs(t, s.agent.AnswerPermission(id, bad), ErrBadAnswer)
	}
	for _, unknown := range []string{"", "p-1", id + "0", strings.TrimSuffix(id, "1") + "2", strings.TrimSuffix(id, "1") + "01"} {
		require.ErrorIs(t, s.agent.AnswerPermission(unknown, wire.PermissionAnswer{Cancelled: true}), ErrUnknownPermission, unknown)
	}
	require.NoError(t, s.agent.AnswerPermission(id, wire.PermissionAnswer{OptionID: "no"}))
	answer := s.hear("")
	require.Equal(t, `"a"`, string(answer.ID))
	require.JSONEq(t, `{"outcome":{"outcome":"selected","optionId":"no"}}`, string(answer.Result))
	require.ErrorIs(t, s.agent.AnswerPermission(id, wire.PermissionAnswer{OptionID: "no"}), ErrPermissionSettled)

	id = s.ask(`"a"`)
	require.NoError(t, s.agent.AnswerPermission(id, wire.PermissionAnswer{Cancelled: true}))
	require.JSONEq(t, `{"outcome":{"outcome":"cancelled"}}`, string(s.hear("").Result))
	s.awaitKinds("turn_started", "permission_request", "permission_settled", "permission_request", "permission_settled")
}

// Cancelling answers every outstanding request as cancelled, and those that the
// agent raises before it has heard of it; the next turn asks as usual.
func TestCancelSettlesPermissions(t *testing.T) {
	s := open(t)
	prompt := s.prompt("t-1")
	ids := []string{s.ask("1"), s.ask("2")}
	require.NoError(t, s.agent.Cancel())
	require.JSONEq(t, `{"sessionId":"sess"}`, string(s.hear("session/cancel").Params))
	for _, rpcID := range []string{"1", "2"} {
		m := s.hear("")
		require.Equal(t, rpcID, string(m.ID))
		require.JSONEq(t, `{"outcome":{"outcome":"cancelled"}}`, string(m.Result))
	}
	ids = append(ids, s.ask("3"))
	require.Equal(t, "3", string(s.hear("").ID))
	for _, id := range ids {
		require.ErrorIs(t, s.agent.AnswerPermission(id, wire.PermissionAnswer{OptionID: "yes"}), ErrPermissionSettled)
	}
	s.reply(prompt, `{"stopReason":"cancelled"}`)
	require.Equal(t, "cancelled", s.awaitEnd().StopReason)
	require.ErrorIs(t, s.agent.Cancel(), ErrNoTurn)

	s.prompt("t-2")
	require.NoError(t, s.agent.AnswerPermission(s.ask("4"), wire.PermissionAnswer{OptionID: "yes"}))
}

// A request that the agent takes back, or leaves behind at the turn's end, is
// settled and cannot be answered.
func TestAbandonedPermissions(t *testing.T) {
	s := open(t)
	prompt := s.prompt("t-1")
	withdrawn, left := s.ask("1"), s.ask("2")
	s.say(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}` + "\n")
	require.Equal(t, "1", string(s.hear("").ID))
	require.ErrorIs(t, s.agent.AnswerPermission(withdrawn, wire.PermissionAnswer{OptionID: "yes"}), ErrPermissionSettled)
	s.reply(prompt, `{"stopReason":"end_turn"}`)
	require.Equal(t, "2", string(s.hear("").ID))
	s.awaitEnd()
	require.ErrorIs(t, s.agent.AnswerPermission(left, wire.PermissionAnswer{OptionID: "yes"}), ErrPermissionSettled)
	s.awaitKinds("turn_started", "permission_request", "permission_request",
		"permission_settled", "permission_settled", "turn_ended")
}

// A malformed request is refused and announced to nobody.
func TestMalformedPermission(t *testing.T) {
	s := open(t)
	for _, params := range []string{`{}`, `[]`, `{"options":{}}`, `null`} {
		s.say(`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":%s}`+"\n", params)
		require.Contains(t, string(s.hear("").Error), "-32602", params)
	}
	require.Empty(t, s.notes.all())
}

// S-001.9: a request that meets a stalled reader is cancelled on the agent's
// behalf, also when it is not even recorded yet; the record keeps the order, and
// an answer comes too late.
func TestStalledReaderCancelsPermission(t *testing.T) {
	s := open(t)
	s.prompt("t-1")
	s.awaitKinds("turn_started")
	s.notes.pause()
	s.say(askLine+"\n", "7")
	s.notes.stalls <- struct{}{}
	m := s.hear("")
	require.Equal(t, "7", string(m.ID))
	require.JSONEq(t, `{"outcome":{"outcome":"cancelled"}}`, string(m.Result))
	require.Len(t, s.notes.all(), 1, "the log has no room yet")
	s.notes.resume()
	s.eventually(func() bool { return len(s.notes.all()) == 3 })
	s.awaitKinds("turn_started", "permission_request", "permission_settled")
	var settled wire.PermissionSettled
	require.NoError(t, json.Unmarshal(s.notes.all()[2].Payload, &settled))
	require.True(t, settled.Cancelled)
	require.ErrorIs(t, s.agent.AnswerPermission(settled.RequestID, wire.PermissionAnswer{OptionID: "yes"}), ErrPermissionSettled)
}

// S-001.9: of two answers and the cancellation for a stalled reader, whichever
// comes first is the only one: the agent is told once, the record says the same,
// and the others learn that it is settled.
func TestPermissionIsSettledOnce(t *testing.T) {
	s := open(t)
	s.prompt("t-1")
	for n := range 100 {
		id := s.ask(fmt.Sprint(n))
		answers := make(chan error, 2)
		for _, option := range []string{"yes", "no"} {
			go func() { answers <- s.agent.AnswerPermission(id, wire.PermissionAnswer{OptionID: option}) }()
		}
		s.notes.stalls <- struct{}{}
		told := s.hear("")
		require.Equal(t, fmt.Sprint(n), string(told.ID))
		won := 0
		for range 2 {
			if err := <-answers; err == nil {
				won++
			} else {
				require.ErrorIs(t, err, ErrPermissionSettled)
			}
		}
		s.eventually(func() bool { return len(s.recorded(wire.EventPermissionSettled)) == n+1 })
		var settled wire.PermissionSettled
		require.NoError(t, json.Unmarshal(s.recorded(wire.EventPermissionSettled)[n].Payload, &settled))
		require.Equal(t, id, settled.RequestID)
		require.Equal(t, settled.Cancelled, won == 0)
		require.Contains(t, string(told.Result), map[bool]string{true: `"cancelled"`, false: `"` + settled.OptionID + `"`}[settled.Cancelled])
		select {
		case <-s.notes.stalls: // the watch was over before
		default:
		}
	}
	s.awaitKinds(append([]string{"turn_started"}, repeat(100, "permission_request", "permission_settled")...)...)
}

func repeat(n int, words ...string) []string {
	var all []string
	for range n {
		all = append(all, words...)
	}
	return all
}
