package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// errFenced is what every step of a pass answers once another boot owns the
// installation.
var errFenced = temporal.NewNonRetryableApplicationError("the recovery pass is over", calls.FailureFenced, nil)

// W-7: a pass that is over ends with the step that was told so, whichever it is:
// nothing is read, stopped, started, written or reported after it.
func TestAFencedPassDoesNothingMore(t *testing.T) {
	adopting := func(p *pass) { p.adoptable() }
	afresh := func(p *pass) { p.on(calls.EvaluateServer, calls.Evaluation{Verdict: recovery.VerdictFresh}) }
	silent := func(p *pass) {
		p.on(calls.EvaluateServer, calls.Evaluation{Verdict: recovery.VerdictRefused, Reason: recovery.RefusedNoAnswer})
	}
	for _, c := range []struct {
		name  string
		peers func(*pass)
		step  string
		order []string // before the step
	}{
		{"guards", adopting, calls.TakeGuards, nil},
		{"record", adopting, calls.LocateServer, []string{calls.TakeGuards}},
		{"credential", adopting, calls.StoreCredential, []string{
			calls.TakeGuards, calls.LocateServer, calls.EvaluateServer, calls.RotateCredential,
		}},
		{"processes", silent, calls.ProbeRecords, []string{calls.TakeGuards, calls.LocateServer, calls.EvaluateServer}},
		{"processes of other servers", adopting, calls.ProbeRecords, []string{
			calls.TakeGuards, calls.LocateServer, calls.EvaluateServer, calls.RotateCredential, calls.StoreCredential,
			calls.ConfirmRotation, calls.EnumerateInstances, calls.ClosePass,
		}},
		{"close", afresh, calls.ClosePass, []string{
			calls.TakeGuards, calls.LocateServer, calls.EvaluateServer, calls.ProbeRecords,
		}},
		{"reconciliation", afresh, calls.ReconcileRecords, []string{
			calls.TakeGuards, calls.LocateServer, calls.EvaluateServer, calls.ProbeRecords, calls.ClosePass,
		}},
		{"own server", afresh, calls.StartServer, []string{
			calls.TakeGuards, calls.LocateServer, calls.EvaluateServer, calls.ProbeRecords, calls.ClosePass,
			calls.ReconcileRecords,
		}},
		{"report", afresh, calls.ReportPass, []string{
			calls.TakeGuards, calls.LocateServer, calls.EvaluateServer, calls.ProbeRecords, calls.ClosePass,
			calls.ReconcileRecords, calls.StartServer,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			elsewhere := record("s1", "i1")
			elsewhere.ServerIdentity = "another"
			p := emptyPass(t)
			p.fence(c.step)
			p.answer(elsewhere)
			c.peers(p)
			p.on(calls.StartServer, calls.Started{})
			p.on(calls.ProbeRecords, calls.Probed{})
			p.on(calls.ClosePass, calls.Closed{})
			p.env.ExecuteWorkflow(TypeAdoption, p.input)
			require.True(t, p.env.IsWorkflowCompleted())
			var failure *temporal.ApplicationError
			require.ErrorAs(t, p.env.GetWorkflowError(), &failure)
			require.Equal(t, calls.FailureFenced, failure.Type())
			require.Equal(t, append(c.order, c.step), p.order)
		})
	}
}

// W-7: the second reconciliation and report, which follow the stops that were
// in flight at the first ones, end a pass that is over as well.
func TestAFencedPassDoesNotReportItsStops(t *testing.T) {
	for _, step := range []string{calls.ReconcileRecords, calls.ReportPass} {
		t.Run(step, func(t *testing.T) {
			p := emptyPass(t)
			p.env.OnActivity(step, mock.Anything, mock.Anything).
				Run(func(mock.Arguments) { p.note(step) }).Return(answered(step)...).Once()
			p.fence(step)
			p.answer(record("s1", "i1"))
			p.input.Deadline = time.Second
			p.adoptable(calls.LiveInstance{ID: "i1", SessionID: "s1", Stopping: true})
			p.on(calls.ClosePass, calls.Closed{})
			p.env.OnActivity(calls.StopInstance, mock.Anything, mock.Anything).
				After(2*p.input.Deadline).Return(calls.StopResult{Stopped: true}, nil)
			p.env.ExecuteWorkflow(TypeAdoption, p.input)
			var failure *temporal.ApplicationError
			require.ErrorAs(t, p.env.GetWorkflowError(), &failure)
			require.Equal(t, calls.FailureFenced, failure.Type())
			require.Equal(t, step, p.order[len(p.order)-1])
			require.Equal(t, 2, p.count(step))
		})
	}
}

// answered is the success of an activity of a finished pass.
func answered(step string) []any {
	if step == calls.ReconcileRecords {
		return []any{calls.Reconciled{}, nil}
	}
	return []any{nil}
}
