package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// B-1, B-9: events arrive as they were sent, payloads byte for byte: spaces,
// numbers of any size, escapes and characters that JSON in HTML would escape.
func TestEventsFrame(t *testing.T) {
	at := time.Date(2024, 2, 3, 4, 5, 6, 789, time.UTC)
	var events []wire.Event
	for i, payload := range []string{
		``, `null`, `{"odd" :  1.50}`, `{"n":1e999}`, `"<b> & \u0000 \ud800 \u2028 ` + "\u2028" + `"`, `[]`,
	} {
		event := wire.Event{Seq: int64(i + 1), Kind: wire.EventUpdate, TurnID: `t-"1"<`, At: at}
		if payload != "" {
			event.Payload = json.RawMessage(payload)
		}
		events = append(events, event)
	}
	raw, err := wire.EncodeEvents(events)
	require.NoError(t, err)
	var frame wire.ServerFrame
	require.NoError(t, json.Unmarshal(raw, &frame))
	require.Equal(t, wire.ServerFrame{Type: wire.FrameEvents, Events: events}, frame)

	_, err = wire.EncodeEvents([]wire.Event{{Seq: 1, At: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}})
	require.Error(t, err)
}
