package demo

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/userapi"
)

// script of a transcript: an update's number, or one of these.
const (
	started = 0
	asked   = -1
	ended   = -2
	alien   = -3
)

func events(script ...int) []userapi.Event {
	all := make([]userapi.Event, len(script))
	for i, what := range script {
		e := userapi.Event{Position: int64(i + 1), Seq: int64(i + 1), InstanceID: "i1"}
		switch what {
		case started:
			e.Kind = string(wire.EventTurnStarted)
		case asked:
			e.Kind = string(wire.EventPermissionRequest)
		case ended:
			e.Kind, e.Payload = string(wire.EventTurnEnded), json.RawMessage(`{"key":"demo-1","stop_reason":"end_turn"}`)
		case alien:
			e.Kind, e.Payload = string(wire.EventUpdate), update("somebody else's words")
		default:
			e.Kind, e.Payload = string(wire.EventUpdate), update(fmt.Sprintf("1 %d", what))
		}
		all[i] = e
	}
	return all
}

func update(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}`, text))
}

// The demo's figures must see every way in which a transcript can be wrong (B-1).
func TestTally(t *testing.T) {
	produced := fakeagent.Produced{Updates: 3, Asks: 1, Ends: 1}
	cases := map[string]struct {
		transcript []userapi.Event
		want       Tally
	}{
		"complete":              {events(started, 1, 2, asked, 3, ended), Tally{Committed: 5}},
		"nothing":               {nil, Tally{Gaps: 5}},
		"missing in the middle": {events(1, asked, 3, ended), Tally{Committed: 4, Gaps: 1}},
		"missing at the end":    {events(1, 2, asked, ended), Tally{Committed: 4, Gaps: 1}},
		"missing request":       {events(1, 2, 3, ended), Tally{Committed: 4, Gaps: 1}},
		"missing turn end":      {events(1, 2, asked, 3), Tally{Committed: 4, Gaps: 1}},
		"twice":                 {events(1, 2, 2, asked, 3, ended), Tally{Committed: 6, Duplicates: 1}},
		"turn ended twice":      {events(1, 2, asked, 3, ended, ended), Tally{Committed: 6, Duplicates: 1}},
		"batch again":           {events(1, 2, 1, 2, asked, 3, ended), Tally{Committed: 7, Duplicates: 2, Disordered: 1}},
		"order":                 {events(2, 1, asked, 3, ended), Tally{Committed: 5, Disordered: 1}},
		"never produced":        {events(1, 2, asked, 3, 4, ended), Tally{Committed: 6, Foreign: 1}},
		"foreign text":          {events(1, 2, asked, alien, 3, ended), Tally{Committed: 6, Foreign: 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.want.Produced = 5
			got := Compare(produced, c.transcript)
			require.Equal(t, c.want, got)
			require.Equal(t, name == "complete", got.Clean())
		})
	}
}

func TestHolesInTheNumbering(t *testing.T) {
	whole := events(started, 1, 2, ended)
	require.Zero(t, Holes(whole))

	position := events(started, 1, 2, ended)
	position[2].Position, position[3].Position = 4, 5
	require.Equal(t, 1, Holes(position))

	seq := events(started, 1, 2, ended)
	seq[3].Seq = 9
	require.Equal(t, 1, Holes(seq))

	next := events(started, 1, 2, ended)
	for i := 2; i < 4; i++ {
		next[i].InstanceID, next[i].Seq = "i2", int64(i-1)
	}
	require.Zero(t, Holes(next), "a second instance begins its own numbering")
	require.False(t, Tally{Holes: 1}.Clean())
}
