package demo

import (
	"encoding/json"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/userapi"
)

// Tally compares what an agent put on its standard output, by its own record,
// with what the backend committed (B-1).
type Tally struct {
	Produced   int // updates, permission requests and ended turns
	Committed  int // the same kinds in the transcript
	Gaps       int // produced, and not in the transcript
	Duplicates int // more than once in the transcript
	Disordered int // updates that come before one with a smaller number
	Holes      int // breaks in the transcript's own numbering
	Foreign    int // updates that the agent has not recorded
}

// Clean reports whether nothing is missing, doubled or out of order.
func (t Tally) Clean() bool {
	return t.Gaps == 0 && t.Duplicates == 0 && t.Disordered == 0 && t.Holes == 0 && t.Foreign == 0
}

// Compare counts. The agent's updates are compared by the numbers in their text;
// requests and turn ends carry none and are compared by their count.
func Compare(produced fakeagent.Produced, transcript []userapi.Event) Tally {
	t := Tally{Produced: produced.Total(), Holes: Holes(transcript)}
	seen := make([]int, produced.Updates+1)
	asks, ends, last := 0, 0, 0
	for _, e := range transcript {
		switch wire.EventKind(e.Kind) {
		case wire.EventPermissionRequest:
			asks++
		case wire.EventTurnEnded:
			ends++
		case wire.EventUpdate:
			t.Committed++
			n := updateNumber(e.Payload)
			if n < 1 || n > produced.Updates {
				t.Foreign++
				continue
			}
			seen[n]++
			if n < last {
				t.Disordered++
			}
			last = n
		}
	}
	t.Committed += asks + ends
	for _, times := range seen[1:] {
		t.count(1, times)
	}
	t.count(produced.Asks, asks)
	t.count(produced.Ends, ends)
	return t
}

func (t *Tally) count(produced, committed int) {
	t.Gaps += max(0, produced-committed)
	t.Duplicates += max(0, committed-produced)
}

// Holes counts where positions, or an instance's sequence numbers, do not go on
// by one.
func Holes(transcript []userapi.Event) int {
	count, position := 0, int64(0)
	seqs := make(map[string]int64)
	for _, e := range transcript {
		if e.Position != position+1 || e.Seq != seqs[e.InstanceID]+1 {
			count++
		}
		position, seqs[e.InstanceID] = e.Position, e.Seq
	}
	return count
}

// updateNumber is the number that the agent wrote into an update's text, 0 when
// there is none.
func updateNumber(payload json.RawMessage) int {
	var update struct {
		Update struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"update"`
	}
	if json.Unmarshal(payload, &update) != nil {
		return 0
	}
	u, ok := fakeagent.ParseUpdate(update.Update.Content.Text)
	if !ok {
		return 0
	}
	return u.N
}

// outcomeOf returns how the turn with the key ended, by the transcript.
func outcomeOf(transcript []userapi.Event, key string) (wire.TurnOutcome, bool) {
	for _, e := range transcript {
		if wire.EventKind(e.Kind) != wire.EventTurnEnded {
			continue
		}
		var outcome wire.TurnOutcome
		if json.Unmarshal(e.Payload, &outcome) == nil && outcome.Key == key {
			return outcome, true
		}
	}
	return wire.TurnOutcome{}, false
}
