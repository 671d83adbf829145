package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// Adoption is one recovery pass of one boot. In order: read the inventory and
// guard its sessions; read the control-server record; evaluate the recorded
// server, and adopt it by replacing its credential, or start an own one;
// enumerate, join, stop what must not live, re-track the rest; close the pass;
// reconcile what was left; report.
//
// One timer is the recovery deadline (S-003.7). It cancels reads. What is in
// flight and allowed to finish, rotations and stops, runs in contexts that the
// deadline does not cancel.
func Adoption(ctx workflow.Context, in calls.AdoptionInput) (calls.AdoptionReport, error) {
	a := &adoption{
		in: in, ctx: ctx,
		outcomes: map[string]calls.SessionOutcome{},
		inFlight: map[string]int{},
		asked:    map[string]bool{},
	}
	if err := a.run(); err != nil {
		return calls.AdoptionReport{}, err
	}
	return a.report, nil
}

// adoption is the state of one pass. Workflow coroutines take turns, so its
// maps need no lock.
type adoption struct {
	in     calls.AdoptionInput
	report calls.AdoptionReport
	server string // identity of the recorded control server

	ctx   workflow.Context // the workflow's own
	reads workflow.Context // cancelled by the deadline

	records  []calls.GuardedRecord
	matches  []recovery.Match
	outcomes map[string]calls.SessionOutcome // by session
	inFlight map[string]int                  // stops that have not ended, by session
	asked    map[string]bool                 // to stop, by instance
	running  int                             // stops and publications that have not ended
	due      time.Time                       // when the deadline elapses
	overdue  bool
	lost     bool // Postgres was away, so that another pass is due
}

func (a *adoption) run() error {
	if err := a.guard(); err != nil {
		return err
	}
	var located calls.Located
	if err := a.until(calls.LocateServer, a.in.Pass, "read the control-server record", &located); err != nil {
		return err
	}
	a.server = located.ServerIdentity
	stopTimer := a.startDeadline()
	defer stopTimer()

	if err := a.judge(located); err != nil {
		return err
	}
	if err := a.settleSessions(); err != nil {
		return err
	}
	if err := a.finish(); err != nil {
		return err
	}
	a.label()
	return nil
}

// guard reads the inventory and takes a guard for each of its sessions, before
// any contact with a control server (S-002.8). An inventory that cannot be read
// is waited for: it is not an empty one (S-002.6).
func (a *adoption) guard() error {
	var taken calls.GuardsTaken
	if err := a.until(calls.TakeGuards, a.in.Pass, "read the inventory, take guards", &taken); err != nil {
		return err
	}
	a.records = taken.Records
	return nil
}

// startDeadline starts the one clock of the pass, at its first contact with the
// recorded endpoint.
func (a *adoption) startDeadline() (stop func()) {
	reads, cancelReads := workflow.WithCancel(a.ctx)
	timerCtx, cancelTimer := workflow.WithCancel(a.ctx)
	a.reads, a.due = reads, workflow.Now(a.ctx).Add(a.in.Deadline)
	workflow.Go(timerCtx, func(ctx workflow.Context) {
		timer := workflow.NewTimerWithOptions(ctx, a.in.Deadline, workflow.TimerOptions{Summary: "recovery deadline"})
		if timer.Get(ctx, nil) == nil {
			a.overdue = true
			cancelReads()
		}
	})
	return cancelTimer
}

// judge evaluates the recorded server, and adopts it, ends it or leaves it
// alone. A server that proved to be ours is ended where it cannot be used: it
// lacks a required capability (O-004.3), or the survival capability is off
// (S-005.5). One that did not prove itself is never touched.
func (a *adoption) judge(located calls.Located) error {
	if !located.Recorded {
		a.report.Verdict = recovery.VerdictFresh
		if !a.in.Survival {
			a.report.Verdict = recovery.VerdictOff
		}
		return nil
	}
	if located.InUse {
		a.report.Verdict, a.report.Adopted = recovery.VerdictAdoptable, true
		return nil
	}
	evaluation := a.evaluate(located)
	a.report.Verdict, a.report.Reason, a.report.Missing = evaluation.Verdict, evaluation.Reason, evaluation.Missing
	proven := evaluation.Verdict == recovery.VerdictAdoptable || evaluation.Verdict == recovery.VerdictIncompatible
	switch {
	case !a.in.Survival:
		a.report.Verdict = recovery.VerdictOff
		if proven {
			a.endServer(located)
		}
	case evaluation.Verdict == recovery.VerdictIncompatible:
		a.endServer(located)
	case evaluation.Verdict == recovery.VerdictAdoptable:
		return a.adopt(located)
	}
	return nil
}

// evaluate asks for identity, proof and capabilities, within the budget of a
// read. A server that never answered is refused as such: it is neither absent
// nor ours.
func (a *adoption) evaluate(located calls.Located) calls.Evaluation {
	ctx := budget(a.reads, a.in.ReadTimeout, a.in.ReadRetries, "identity, proof, capabilities")
	input := calls.EvaluateInput{Pass: a.in.Pass, ServerIdentity: located.ServerIdentity}
	var evaluation calls.Evaluation
	err := workflow.ExecuteActivity(ctx, calls.EvaluateServer, input).Get(ctx, &evaluation)
	switch {
	case a.storeLost(err):
		return calls.Evaluation{Verdict: recovery.VerdictUndecided}
	case err != nil:
		return calls.Evaluation{Verdict: recovery.VerdictRefused, Reason: recovery.RefusedNoAnswer}
	default:
		return evaluation
	}
}

// adopt replaces the credential: rotate, store, confirm, in a context that the
// deadline does not cancel. Once rotated it is stored whatever it takes, and no
// second server is started (O-002.5). A confirmation that fails leaves the
// superseded credential acceptable for another adoption and nothing else, so
// that the pass goes on.
func (a *adoption) adopt(located calls.Located) error {
	ctx, cancel := workflow.NewDisconnectedContext(a.ctx)
	defer cancel()
	var rotated calls.Rotated
	rotate := budget(ctx, a.in.ReadTimeout, a.in.ReadRetries, "replace the credential")
	input := calls.RotateInput{Pass: a.in.Pass, ServerIdentity: located.ServerIdentity}
	err := workflow.ExecuteActivity(rotate, calls.RotateCredential, input).Get(ctx, &rotated)
	switch {
	case a.storeLost(err):
		a.report.Verdict = recovery.VerdictUndecided
		return nil
	case err != nil || rotated.Refused:
		a.report.Verdict, a.report.Reason = recovery.VerdictRefused, recovery.RefusedCredentialRotationFailure
		return nil
	case rotated.ShuttingDown:
		a.report.Verdict = recovery.VerdictFresh
		return nil
	}
	rotation := calls.RotationInput{Pass: a.in.Pass, RotationID: rotated.RotationID}
	store := untilDone(ctx, storeTimeout, "store secret and record")
	if err := workflow.ExecuteActivity(store, calls.StoreCredential, rotation).Get(ctx, nil); err != nil {
		return err
	}
	a.lost = a.overdue // everything before is bounded by budgets
	confirm := budget(ctx, a.in.ReadTimeout, a.in.ReadRetries, "confirm the rotation")
	if err := workflow.ExecuteActivity(confirm, calls.ConfirmRotation, rotation).Get(ctx, nil); err != nil {
		workflow.GetLogger(a.ctx).Warn("rotation not confirmed", "reason", failureType(err))
	}
	a.report.Adopted, a.report.RotationID = true, rotated.RotationID
	return nil
}

// finish closes the pass and reconciles, and only then starts a server where
// none was adopted: the records of an ended one are repaired before anything
// new begins (O-004.3). Users are served from there on. Sessions whose stop was
// in flight are settled once it has ended.
func (a *adoption) finish() error {
	var closed calls.Closed
	if err := a.until(calls.ClosePass, a.in.Pass, "close the pass", &closed); err != nil {
		return err
	}
	a.cutOff(closed)
	if err := a.doubtStale(); err != nil {
		return err
	}
	first := a.collect()
	if err := a.reconcile(first); err != nil {
		return err
	}
	if !a.report.Adopted && !a.report.Again {
		if err := a.until(calls.StartServer, a.in.Pass, "start a control server", nil); err != nil {
			return err
		}
	}
	if err := a.tell(); err != nil {
		return err
	}
	if err := workflow.Await(a.ctx, func() bool { return a.running == 0 }); err != nil {
		return err
	}
	late := a.lateOutcomes(first)
	if len(late) == 0 {
		return nil
	}
	if err := a.reconcile(late); err != nil {
		return err
	}
	return a.tell()
}

// lateOutcomes returns what has become of the sessions whose stop was in flight
// at the first reconciliation.
func (a *adoption) lateOutcomes(first []calls.SessionOutcome) []calls.SessionOutcome {
	var late []calls.SessionOutcome
	for _, o := range first {
		if o.StopInFlight {
			late = append(late, a.outcomes[o.SessionID])
		}
	}
	return late
}

func (a *adoption) reconcile(outcomes []calls.SessionOutcome) error {
	input := calls.ReconcileInput{Pass: a.in.Pass, Outcomes: outcomes}
	return a.until(calls.ReconcileRecords, input, "reconcile records", nil)
}

// tell shows operators and users how the pass stands.
func (a *adoption) tell() error {
	a.summarise()
	return a.until(calls.ReportPass, calls.ReportInput{Pass: a.in.Pass, Report: a.report}, "report", nil)
}

// until runs an activity that must succeed before anything else may happen.
func (a *adoption) until(name string, input any, summary string, result any) error {
	timeout := storeTimeout
	if name == calls.StartServer {
		timeout = startServerTimeout
	}
	ctx := untilDone(a.ctx, timeout, summary)
	return workflow.ExecuteActivity(ctx, name, input).Get(ctx, result)
}

// settle takes an outcome over. Nothing that is learnt later makes up for an
// agent that could not be stopped (S-002.16).
func (a *adoption) settle(o calls.SessionOutcome) {
	if a.outcomes[o.SessionID].Outcome != recovery.OutcomeUnstopped {
		a.outcomes[o.SessionID] = o
	}
}
