package recovery

import "sort"

// Record is one live standalone row of the recovery inventory, as far as the
// join needs it.
type Record struct {
	SessionID   string
	ExecutionID string // the instance id that the record names
	OwnedBy     SessionOutcome
}

// Instance is one instance as the control server enumerated it.
type Instance struct {
	ID        string
	SessionID string
	Stopping  bool
	// Ended: the agent has ended by itself. The instance still holds its events
	// and its last outcome, and counts as live for no rule.
	Ended bool
}

// Match is one session whose instance is to be re-tracked once all of its
// losers are stopped. Ended: there is no live instance, and this one is to be
// taken over for its events and its last outcome only.
type Match struct {
	SessionID string
	Instance  string
	Losers    []string
	Ended     bool
}

// Stop is one instance that recovery decided to stop, and why.
type Stop struct {
	SessionID string // empty when the instance named none
	Instance  string
	Reason    StopReason
}

// StopReason says which rule of the join condemned an instance.
type StopReason string

// Stop reasons.
const (
	StopOrphan     StopReason = "no_record"       // S-002.6
	StopDuplicate  StopReason = "duplicate"       // S-002.10, one match
	StopAmbiguous  StopReason = "ambiguous"       // S-002.10, none or several match
	StopUnfinished StopReason = "stop_unfinished" // an earlier stop of it has not ended, or failed
	StopMissing    StopReason = "missing_value"   // S-002.4
	StopUnread     StopReason = "read_failed"     // S-002.13
	StopDeadline   StopReason = "deadline"        // S-003.7
	StopBlocked    StopReason = "loser_unstopped" // S-002.15
	StopUser       StopReason = "user"            // a user's request
)

// Plan is the result of a join: what becomes of every record and of every
// live instance.
type Plan struct {
	// Matches are to be observed and published, in order of session id.
	Matches []Match
	// Stops are every instance to stop; losers of a match are among them.
	Stops []Stop
	// Settled are the sessions whose outcome the join itself decides.
	Settled map[string]SessionOutcome
}

// Join correlates the records that were read with the instances that were
// enumerated. It is pure, and it must be called only when both were read:
// an unread side is not an empty one (S-002.6, S-002.12).
//
//   - One live instance of a session is re-tracked, whatever its id (S-002.2).
//   - Of several, only the one whose id is the recorded execution id; the
//     others are stopped. None or more than one such: all are stopped
//     (S-002.10).
//   - An instance with no record is stopped (S-002.6).
//   - A record with no live instance is stale (S-002.7), unless its recorded
//     instance ended by itself while nobody was attached: what that one still
//     holds is taken over first (S-001.5).
//   - A session that a running resume or a recorded user's stop owns is left
//     alone, with all of its instances (W-3, W-7).
//   - An instance that is already stopping is never re-tracked. It is stopped
//     again, which joins a stop in progress and repeats one that failed; alone,
//     it settles its session as OutcomeInstanceStopping until that has ended.
//
// Sessions do not influence each other (S-002.11).
func Join(records []Record, live []Instance) Plan {
	bySession := make(map[string][]Instance)
	for _, in := range live {
		bySession[in.SessionID] = append(bySession[in.SessionID], in)
	}
	plan := Plan{Settled: make(map[string]SessionOutcome)}
	known := make(map[string]bool, len(records))
	for _, rec := range records {
		known[rec.SessionID] = true
		if rec.OwnedBy != "" {
			plan.Settled[rec.SessionID] = rec.OwnedBy
			continue
		}
		joinOne(&plan, rec, bySession[rec.SessionID])
	}
	for session, instances := range bySession {
		if known[session] {
			continue
		}
		for _, in := range instances {
			plan.Stops = append(plan.Stops, Stop{SessionID: session, Instance: in.ID, Reason: StopOrphan})
		}
	}
	sort.Slice(plan.Matches, func(i, j int) bool { return plan.Matches[i].SessionID < plan.Matches[j].SessionID })
	sort.Slice(plan.Stops, func(i, j int) bool { return plan.Stops[i].Instance < plan.Stops[j].Instance })
	return plan
}

func joinOne(plan *Plan, rec Record, instances []Instance) {
	var running, ended, stopping []Instance
	for _, in := range instances {
		switch {
		case in.Stopping:
			stopping = append(stopping, in)
			plan.Stops = append(plan.Stops, Stop{SessionID: rec.SessionID, Instance: in.ID, Reason: StopUnfinished})
		case in.Ended:
			ended = append(ended, in)
		default:
			running = append(running, in)
		}
	}
	for _, in := range ended {
		if in.ID != rec.ExecutionID || len(running) > 0 {
			plan.Stops = append(plan.Stops, Stop{SessionID: rec.SessionID, Instance: in.ID, Reason: StopDuplicate})
		}
	}
	switch len(running) {
	case 0:
		joinEnded(plan, rec, ended, stopping)
	case 1:
		losers := ids(append(ended, stopping...))
		plan.Matches = append(plan.Matches, Match{SessionID: rec.SessionID, Instance: running[0].ID, Losers: losers})
	default:
		joinSeveral(plan, rec, running, append(ended, stopping...))
	}
}

func joinEnded(plan *Plan, rec Record, ended, stopping []Instance) {
	for _, in := range ended {
		if in.ID == rec.ExecutionID {
			plan.Matches = append(plan.Matches, Match{SessionID: rec.SessionID, Instance: in.ID, Losers: ids(stopping), Ended: true})
			return
		}
	}
	if len(stopping) > 0 {
		plan.Settled[rec.SessionID] = OutcomeInstanceStopping
		return
	}
	plan.Settled[rec.SessionID] = OutcomeStale
}

func joinSeveral(plan *Plan, rec Record, running, others []Instance) {
	matching := 0
	for _, in := range running {
		if in.ID == rec.ExecutionID {
			matching++
		}
	}
	if matching != 1 {
		plan.Settled[rec.SessionID] = OutcomeAmbiguous
		for _, in := range running {
			plan.Stops = append(plan.Stops, Stop{SessionID: rec.SessionID, Instance: in.ID, Reason: StopAmbiguous})
		}
		return
	}
	losers := ids(others)
	for _, in := range running {
		if in.ID == rec.ExecutionID {
			continue
		}
		losers = append(losers, in.ID)
		plan.Stops = append(plan.Stops, Stop{SessionID: rec.SessionID, Instance: in.ID, Reason: StopDuplicate})
	}
	sort.Strings(losers)
	plan.Matches = append(plan.Matches, Match{SessionID: rec.SessionID, Instance: rec.ExecutionID, Losers: losers})
}

func ids(instances []Instance) []string {
	var out []string
	for _, in := range instances {
		out = append(out, in.ID)
	}
	sort.Strings(out)
	return out
}
