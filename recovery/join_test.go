package recovery

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// S-002.2, S-002.6, S-002.7, S-002.10, W-3, W-7: every row of the join.
func TestJoin(t *testing.T) {
	rec := func(session, execution string) Record { return Record{SessionID: session, ExecutionID: execution} }
	in := func(id, session string) Instance { return Instance{ID: id, SessionID: session} }
	stopping := func(id, session string) Instance { return Instance{ID: id, SessionID: session, Stopping: true} }
	cases := []struct {
		name    string
		records []Record
		live    []Instance
		want    Plan
	}{
		{
			name: "nothing recorded, nothing alive",
			want: Plan{Settled: map[string]SessionOutcome{}},
		},
		{
			name:    "S-002.2 the only live instance is taken, whatever its id",
			records: []Record{rec("s1", "other")},
			live:    []Instance{in("i1", "s1")},
			want: Plan{
				Matches: []Match{{SessionID: "s1", Instance: "i1"}},
				Settled: map[string]SessionOutcome{},
			},
		},
		{
			name: "S-002.6 no record: stopped",
			live: []Instance{in("i1", "s1"), in("i2", "")},
			want: Plan{
				Stops: []Stop{
					{SessionID: "s1", Instance: "i1", Reason: StopOrphan},
					{Instance: "i2", Reason: StopOrphan},
				},
				Settled: map[string]SessionOutcome{},
			},
		},
		{
			name:    "S-002.7 no live instance: stale",
			records: []Record{rec("s1", "i1")},
			want:    Plan{Settled: map[string]SessionOutcome{"s1": OutcomeStale}},
		},
		{
			name:    "S-002.10 several, one is the recorded one",
			records: []Record{rec("s1", "i2")},
			live:    []Instance{in("i3", "s1"), in("i1", "s1"), in("i2", "s1")},
			want: Plan{
				Matches: []Match{{SessionID: "s1", Instance: "i2", Losers: []string{"i1", "i3"}}},
				Stops: []Stop{
					{SessionID: "s1", Instance: "i1", Reason: StopDuplicate},
					{SessionID: "s1", Instance: "i3", Reason: StopDuplicate},
				},
				Settled: map[string]SessionOutcome{},
			},
		},
		{
			name:    "S-002.10 several, none is the recorded one",
			records: []Record{rec("s1", "i9")},
			live:    []Instance{in("i1", "s1"), in("i2", "s1")},
			want: Plan{
				Stops: []Stop{
					{SessionID: "s1", Instance: "i1", Reason: StopAmbiguous},
					{SessionID: "s1", Instance: "i2", Reason: StopAmbiguous},
				},
				Settled: map[string]SessionOutcome{"s1": OutcomeAmbiguous},
			},
		},
		{
			name:    "W-3 a running resume keeps its session, with its instance",
			records: []Record{{SessionID: "s1", ExecutionID: "i1", OwnedBy: OutcomeOwnedByResume}},
			live:    []Instance{in("i1", "s1")},
			want:    Plan{Settled: map[string]SessionOutcome{"s1": OutcomeOwnedByResume}},
		},
		{
			name:    "W-7 a recorded stop keeps its session",
			records: []Record{{SessionID: "s1", ExecutionID: "i1", OwnedBy: OutcomeOwnedByStop}},
			live:    []Instance{in("i1", "s1")},
			want:    Plan{Settled: map[string]SessionOutcome{"s1": OutcomeOwnedByStop}},
		},
		{
			name:    "S-002.16 an instance that is ending is not re-tracked, and its stop is joined or repeated",
			records: []Record{rec("s1", "i1"), rec("s3", "i3")},
			live:    []Instance{stopping("i1", "s1"), stopping("i2", "s2"), {ID: "i3", SessionID: "s3", Ended: true}, stopping("i4", "s3")},
			want: Plan{
				Matches: []Match{{SessionID: "s3", Instance: "i3", Losers: []string{"i4"}, Ended: true}},
				Stops: []Stop{
					{SessionID: "s1", Instance: "i1", Reason: StopUnfinished},
					{SessionID: "s2", Instance: "i2", Reason: StopOrphan},
					{SessionID: "s3", Instance: "i4", Reason: StopUnfinished},
				},
				Settled: map[string]SessionOutcome{"s1": OutcomeInstanceStopping},
			},
		},
		{
			name:    "S-001.5 what an ended agent still holds is taken over",
			records: []Record{rec("s1", "i1")},
			live:    []Instance{{ID: "i1", SessionID: "s1", Ended: true}},
			want: Plan{
				Matches: []Match{{SessionID: "s1", Instance: "i1", Ended: true}},
				Settled: map[string]SessionOutcome{},
			},
		},
		{
			name:    "an ended instance that is not the recorded one is cleared away",
			records: []Record{rec("s1", "i1"), rec("s2", "i3")},
			live:    []Instance{{ID: "i2", SessionID: "s1", Ended: true}, in("i3", "s2"), {ID: "i4", SessionID: "s2", Ended: true}},
			want: Plan{
				Matches: []Match{{SessionID: "s2", Instance: "i3", Losers: []string{"i4"}}},
				Stops: []Stop{
					{SessionID: "s1", Instance: "i2", Reason: StopDuplicate},
					{SessionID: "s2", Instance: "i4", Reason: StopDuplicate},
				},
				Settled: map[string]SessionOutcome{"s1": OutcomeStale},
			},
		},
		{
			name:    "S-002.15 a live instance waits for the end of an ending one",
			records: []Record{rec("s1", "i1")},
			live:    []Instance{stopping("i1", "s1"), in("i2", "s1")},
			want: Plan{
				Matches: []Match{{SessionID: "s1", Instance: "i2", Losers: []string{"i1"}}},
				Stops:   []Stop{{SessionID: "s1", Instance: "i1", Reason: StopUnfinished}},
				Settled: map[string]SessionOutcome{},
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, Join(c.records, c.live))
		})
	}
}

// S-002.6, S-002.7, S-002.9, S-002.10, S-002.11: for any inventory and any
// enumeration, every record has exactly one fate, every live instance of an
// unowned session is tracked or stopped but not both, the same input gives the
// same plan, and no session's fate depends on another session.
func TestJoinProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records, live := drawInventory(t)
		plan := Join(records, live)
		require.Equal(t, plan, Join(records, live))

		owned := map[string]bool{}
		for _, r := range records {
			owned[r.SessionID] = r.OwnedBy != ""
			matched := 0
			for _, m := range plan.Matches {
				if m.SessionID == r.SessionID {
					matched++
				}
			}
			_, settled := plan.Settled[r.SessionID]
			require.True(t, (matched == 1) != settled, "session %s: %d matches, settled %v", r.SessionID, matched, settled)

			alone := Join([]Record{r}, of(live, r.SessionID))
			require.Equal(t, alone.Settled[r.SessionID], plan.Settled[r.SessionID])
		}
		tracked, stopped := map[string]int{}, map[string]int{}
		for _, m := range plan.Matches {
			tracked[m.Instance]++
		}
		for _, s := range plan.Stops {
			stopped[s.Instance]++
		}
		for _, in := range live {
			fates := tracked[in.ID] + stopped[in.ID]
			if in.Stopping {
				require.Zero(t, tracked[in.ID], "instance %s is ending", in.ID)
			}
			if owned[in.SessionID] {
				require.Zero(t, fates, "instance %s is left alone", in.ID)
				continue
			}
			require.Equal(t, 1, fates, "instance %s", in.ID)
		}
	})
}

func drawInventory(t *rapid.T) ([]Record, []Instance) {
	sessions := rapid.IntRange(0, 6).Draw(t, "sessions")
	var records []Record
	for s := range sessions {
		owner := rapid.SampledFrom([]SessionOutcome{"", "", "", OutcomeOwnedByResume, OutcomeOwnedByStop}).Draw(t, "owner")
		records = append(records, Record{
			SessionID:   fmt.Sprintf("s%d", s),
			ExecutionID: fmt.Sprintf("i%d", rapid.IntRange(0, 12).Draw(t, "execution")),
			OwnedBy:     owner,
		})
	}
	var live []Instance
	for i := range rapid.IntRange(0, 12).Draw(t, "instances") {
		live = append(live, Instance{
			ID:        fmt.Sprintf("i%d", i),
			SessionID: fmt.Sprintf("s%d", rapid.IntRange(0, 8).Draw(t, "session")),
			Stopping:  rapid.Bool().Draw(t, "stopping"),
			Ended:     rapid.Bool().Draw(t, "ended"),
		})
	}
	return records, live
}

func of(live []Instance, session string) []Instance {
	var out []Instance
	for _, in := range live {
		if in.SessionID == session {
			out = append(out, in)
		}
	}
	return out
}
