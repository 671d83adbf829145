package pump

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// FuzzBatch, B-1, B-9: whatever events hold, a batch has every one of them, in
// order and byte for byte, with the turns that they begin and end; or it is
// refused, which only an unreadable event of those kinds may do.
func FuzzBatch(f *testing.F) {
	for _, payload := range []string{
		"", "null", "{}", "[]", `"`, "\x00", "\xff", `{"key":"\u0000"}`, `{"key":1}`, `{"exit_code":1e999}`,
		`{"exit_code":-1,"signal":"killed"}`, `{"turn_id":"t","key":"k","stop_reason":"\ud800","ended_at":"2024-02-03T04:05:06Z"}`,
		`{"turn_id":"t","ended_at":"never"}`, `{"turn_id":"t"}` + "\r\n", "\x1b[0m{}",
	} {
		f.Add([]byte(payload), "update", "turn_ended")
		f.Add([]byte(payload), "turn_started", "agent_exited")
		f.Add([]byte(payload), "noise", "\x00")
	}
	p := &pump{cfg: Config{Installation: "i", BootID: "b"}, session: "s", instance: "x", log: zap.NewNop()}
	f.Fuzz(func(t *testing.T, payload []byte, first, second string) {
		events := []wire.Event{
			{Seq: 1, Kind: wire.EventKind(first), TurnID: first, Payload: payload},
			{Seq: 2, Kind: wire.EventKind(second), TurnID: second, Payload: payload},
		}
		count := map[wire.EventKind]int{}
		readable := true
		for _, e := range events {
			count[e.Kind]++
			if into, decoded := decodedKinds[e.Kind]; decoded {
				readable = readable && json.Unmarshal(payload, into()) == nil
			}
		}
		batch, exit, err := p.batch(events)
		require.Equal(t, readable, err == nil, "%v", err)
		if !readable {
			return
		}
		require.Len(t, batch.Events, 2)
		for i, row := range batch.Events {
			require.Equal(t, events[i].Seq, row.Seq)
			require.Equal(t, string(events[i].Kind), row.Kind)
			require.Equal(t, payload, []byte(row.Payload))
		}
		require.Len(t, batch.TurnsStarted, count[wire.EventTurnStarted])
		require.Len(t, batch.Outcomes, count[wire.EventTurnEnded])
		require.Equal(t, count[wire.EventAgentExited] > 0, exit != nil)
	})
}

// decodedKinds are the kinds of which a batch reads more than bytes.
var decodedKinds = map[wire.EventKind]func() any{
	wire.EventTurnStarted: func() any { return new(wire.TurnStarted) },
	wire.EventTurnEnded:   func() any { return new(wire.TurnOutcome) },
	wire.EventAgentExited: func() any { return new(wire.AgentExited) },
}
