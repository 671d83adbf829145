package workflows

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// ending is a stop that this pass decided, while it runs and after.
type ending struct {
	done    bool
	stopped bool
	detail  string
}

// stop starts the abandoned child that ends one instance and follows it in a
// coroutine of its own. The child runs in a context that neither the deadline
// nor the end of this workflow cancels; its run timeout ends it when its boot
// is dead. Until it has ended, its session counts as one whose stop is in
// flight: the record is left alone and the guard stays (S-003.6, S-003.7). A
// stop that fails makes its session unstopped, whatever was said of it before
// (S-002.16).
func (a *adoption) stop(s recovery.Stop) *ending {
	ctx, _ := workflow.NewDisconnectedContext(a.ctx)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:         StopID(s.Instance, passRequest(a.in.Pass)),
		WorkflowRunTimeout: stopRunTimeout,
		ParentClosePolicy:  enumspb.PARENT_CLOSE_POLICY_ABANDON,
		StaticSummary:      "stop " + s.Instance + ": " + string(s.Reason),
	})
	future := workflow.ExecuteChildWorkflow(ctx, TypeStopWithRetry, calls.StopInput{
		InstanceID: s.Instance, SessionID: s.SessionID, Reason: s.Reason, BootID: a.in.Pass.BootID,
		ReadTimeout: a.in.ReadTimeout, ReadRetries: a.in.ReadRetries,
	})
	end := &ending{}
	a.running++
	a.asked[s.Instance] = true
	a.inFlight[s.SessionID]++
	workflow.Go(a.ctx, func(ctx workflow.Context) {
		var result calls.StopResult
		err := future.Get(ctx, &result)
		end.done, end.stopped, end.detail = true, err == nil && result.Stopped, result.Detail
		a.running--
		a.inFlight[s.SessionID]--
		if end.stopped {
			a.report.Stopped++
			if a.outcomes[s.SessionID].Outcome == recovery.OutcomeInstanceStopping && a.inFlight[s.SessionID] == 0 {
				a.settle(calls.SessionOutcome{SessionID: s.SessionID, Outcome: recovery.OutcomeStale})
			}
			return
		}
		a.report.Unstopped++
		if s.SessionID != "" {
			a.settle(calls.SessionOutcome{
				SessionID: s.SessionID, Outcome: recovery.OutcomeUnstopped, Instance: s.Instance, Detail: end.detail,
			})
		}
	})
	return end
}

// stopInstead settles a match with an outcome other than re-tracked and ends
// its instance.
func (a *adoption) stopInstead(match recovery.Match, reason recovery.StopReason, settled calls.SessionOutcome) {
	a.settle(settled)
	a.stop(recovery.Stop{SessionID: match.SessionID, Instance: match.Instance, Reason: reason})
}

// cutOff settles what the deadline caught, after the pass was closed. Sessions
// that were tracked by then are published. The others never will be in this
// pass, so their instances are stopped; these stops count as in flight. A pass
// that lost Postgres or Temporal stops nothing: what it did not publish stays
// unknown, and another pass is due.
func (a *adoption) cutOff(closed calls.Closed) {
	tracked := make(map[string]bool, len(closed.Published))
	for _, session := range closed.Published {
		tracked[session] = true
	}
	lost := closed.StoreLost || a.lost || a.lostEngine()
	for _, match := range a.matches {
		_, settled := a.outcomes[match.SessionID]
		switch {
		case !lost && !tracked[match.SessionID] && a.blocked(match):
			a.stop(recovery.Stop{SessionID: match.SessionID, Instance: match.Instance, Reason: recovery.StopBlocked})
		case settled:
		case tracked[match.SessionID]:
			a.settle(outcomeOf(match, recovery.OutcomeRetracked, ""))
		case lost:
			a.report.Again = true
			a.settle(outcomeOf(match, recovery.OutcomeUnknown, ""))
		default:
			a.stopInstead(match, recovery.StopDeadline, outcomeOf(match, recovery.OutcomeDeadline, ""))
		}
	}
}

// blocked reports whether the deadline caught a winner that waited for the last
// of its losers when an earlier one had not been stopped already. It is stopped as
// any blocked winner (S-002.15); one whose agent has ended keeps what it still
// holds for the next boot.
func (a *adoption) blocked(match recovery.Match) bool {
	return a.outcomes[match.SessionID].Outcome == recovery.OutcomeUnstopped && !match.Ended && !a.asked[match.Instance] &&
		workflow.GetVersion(a.ctx, changeBlockedAtDeadline, workflow.DefaultVersion, 1) >= 1
}

// engineSlack is how late the deadline may be noticed before that means that
// Temporal was away.
const engineSlack = 5 * time.Second

// lostEngine reports whether the deadline elapsed while Temporal was away: then
// it is noticed much later than it was due.
func (a *adoption) lostEngine() bool {
	return workflow.Now(a.ctx).Sub(a.due) > engineSlack
}
