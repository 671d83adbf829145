package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// retrackers is how many sessions are re-tracked at once. A worker's cost grows
// with the square of its live coroutines; fifty keep the pipeline full.
const retrackers = 50

// recoverSessions enumerates the adopted server's instances, joins them with
// the records, stops what must not live and re-tracks the rest. It returns when
// every session has an outcome and every stop has ended, or at the deadline.
func (a *adoption) recoverSessions() error {
	plan, ok := a.enumerate()
	if !ok {
		a.settleUnknown() // and no second server (S-002.12)
		return nil
	}
	a.report.Enumerated = true
	a.matches = plan.Matches
	for session, outcome := range plan.Settled {
		a.settle(calls.SessionOutcome{SessionID: session, Outcome: outcome})
	}
	endings := make(map[string]*ending, len(plan.Stops))
	for _, s := range plan.Stops {
		endings[s.Instance] = a.stop(s)
	}
	a.retrackAll(endings)
	return workflow.Await(a.ctx, func() bool { return a.overdue || a.running == 0 })
}

func (a *adoption) enumerate() (recovery.Plan, bool) {
	ctx := budget(a.reads, a.in.ReadTimeout, a.in.ReadRetries, "enumerate instances")
	var found calls.Enumerated
	if err := workflow.ExecuteActivity(ctx, calls.EnumerateInstances, a.in.Pass).Get(ctx, &found); err != nil {
		return recovery.Plan{}, false
	}
	records := make([]recovery.Record, 0, len(a.records))
	for _, r := range a.records {
		records = append(records, recovery.Record{SessionID: r.SessionID, ExecutionID: r.ExecutionID, OwnedBy: r.OwnedBy})
	}
	live := make([]recovery.Instance, 0, len(found.Instances))
	for _, in := range found.Instances {
		live = append(live, recovery.Instance{ID: in.ID, SessionID: in.SessionID, Stopping: in.Stopping, Ended: in.Ended})
	}
	return recovery.Join(records, live), true
}

// retrackAll runs the matches through a pool of coroutines.
func (a *adoption) retrackAll(endings map[string]*ending) {
	next := 0
	pool := workflow.NewWaitGroup(a.ctx)
	for range min(retrackers, len(a.matches)) {
		pool.Add(1)
		workflow.Go(a.ctx, func(ctx workflow.Context) {
			defer pool.Done()
			for next < len(a.matches) && !a.overdue {
				match := a.matches[next]
				next++
				a.retrack(ctx, match, endings)
			}
		})
	}
	pool.Wait(a.ctx)
}

// retrack settles one match, unless the deadline comes first. Its losers are
// stopped before anything else: one that cannot be stopped blocks its winner,
// which is then stopped on the same terms (S-002.15).
func (a *adoption) retrack(ctx workflow.Context, match recovery.Match, endings map[string]*ending) {
	if len(match.Losers) > 0 {
		gone := func() bool {
			for _, loser := range match.Losers {
				if !endings[loser].done {
					return false
				}
			}
			return true
		}
		if workflow.Await(ctx, func() bool { return a.overdue || gone() }) != nil || a.overdue {
			return
		}
		for _, loser := range match.Losers {
			if !endings[loser].stopped {
				a.stopInstead(match, recovery.StopBlocked, calls.SessionOutcome{
					SessionID: match.SessionID, Outcome: recovery.OutcomeUnstopped, Instance: loser, Detail: endings[loser].detail,
				})
				return
			}
		}
	}
	input := calls.SessionInput{Pass: a.in.Pass, SessionID: match.SessionID, InstanceID: match.Instance}
	read := budget(a.reads, a.in.ReadTimeout, a.in.ReadRetries, "observe "+match.SessionID)
	var seen calls.Observation
	err := workflow.ExecuteActivity(read, calls.ObserveSession, input).Get(ctx, &seen)
	switch {
	case a.overdue:
	case a.storeLost(err): // the instance is neither recovered nor stopped
	case err != nil:
		a.stopInstead(match, recovery.StopUnread, outcomeOf(match, recovery.OutcomeReadFailed, failureType(err)))
	case seen.Gone:
		a.settle(outcomeOf(match, recovery.OutcomeStale, ""))
	case len(seen.Missing) > 0 && !seen.Ended:
		a.stopInstead(match, recovery.StopMissing, outcomeOf(match, recovery.OutcomeMissingValue, seen.Missing[0]))
	default:
		match.Ended = seen.Ended
		a.publish(ctx, match, input)
	}
}

// publish makes the session usable again. The activity decides by the execution
// store whether it is in time; once it is, its effects finish whatever the
// deadline does, and one that is late changes nothing (S-003.7). The deadline
// therefore ends the wait, not the activity: what was tracked when the pass is
// closed counts as published.
func (a *adoption) publish(ctx workflow.Context, match recovery.Match, input calls.SessionInput) {
	effects, _ := workflow.NewDisconnectedContext(a.ctx)
	publish := untilDone(effects, storeTimeout, "publish "+match.SessionID)
	future := workflow.ExecuteActivity(publish, calls.PublishSession, input)
	a.running++
	ended := false
	workflow.Go(a.ctx, func(ctx workflow.Context) {
		var published calls.Published
		err := future.Get(ctx, &published)
		a.running--
		ended = true
		switch {
		case err != nil:
			a.stopInstead(match, recovery.StopUnread, outcomeOf(match, recovery.OutcomeReadFailed, failureType(err)))
		case published.Late:
		case match.Ended:
			a.settle(outcomeOf(match, recovery.OutcomeAgentEnded, ""))
		default:
			a.settle(outcomeOf(match, recovery.OutcomeRetracked, ""))
		}
	})
	if err := workflow.Await(ctx, func() bool { return a.overdue || ended }); err != nil {
		return
	}
}

func outcomeOf(match recovery.Match, outcome recovery.SessionOutcome, detail string) calls.SessionOutcome {
	return calls.SessionOutcome{SessionID: match.SessionID, Outcome: outcome, Instance: match.Instance, Detail: detail}
}
