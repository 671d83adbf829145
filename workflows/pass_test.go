package workflows

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// pass is a recovery pass in the test environment: the workflow is the real
// one, and the peers answer as the test says.
type pass struct {
	env        *testsuite.TestWorkflowEnvironment
	mu         sync.Mutex // activities run at the same time
	order      []string
	reconciled []calls.ReconcileInput
	input      calls.AdoptionInput
	located    calls.Located
}

var errUnanswered = temporal.NewApplicationError("no answer", calls.FailureUnanswered, nil)

// newPass is a pass over the records, most of whose peers answer.
func newPass(t *testing.T, records ...calls.GuardedRecord) *pass {
	t.Helper()
	p := emptyPass(t)
	p.answer(records...)
	return p
}

// emptyPass is a pass of which no peer answers yet. What a test says first about
// an activity holds.
func emptyPass(t *testing.T) *pass {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	p := &pass{env: suite.NewTestWorkflowEnvironment(), located: calls.Located{Recorded: true, ServerIdentity: "server"}, input: calls.AdoptionInput{
		Pass: calls.Pass{Installation: "inst", BootID: "boot", Number: 1}, Survival: true,
		Deadline: 30 * time.Second, ReadTimeout: 200 * time.Millisecond, ReadRetries: 2,
	}}
	p.env.RegisterWorkflowWithOptions(Adoption, workflow.RegisterOptions{Name: TypeAdoption})
	p.env.RegisterWorkflowWithOptions(StopWithRetry, workflow.RegisterOptions{Name: TypeStopWithRetry})
	register(p, calls.TakeGuards, func(context.Context, calls.Pass) (calls.GuardsTaken, error) { return calls.GuardsTaken{}, nil })
	register(p, calls.LocateServer, func(context.Context, calls.Pass) (calls.Located, error) { return calls.Located{}, nil })
	register(p, calls.EvaluateServer, func(context.Context, calls.EvaluateInput) (calls.Evaluation, error) { return calls.Evaluation{}, nil })
	register(p, calls.RotateCredential, func(context.Context, calls.RotateInput) (calls.Rotated, error) { return calls.Rotated{}, nil })
	register(p, calls.StoreCredential, func(context.Context, calls.RotationInput) error { return nil })
	register(p, calls.ConfirmRotation, func(context.Context, calls.RotationInput) error { return nil })
	register(p, calls.StartServer, func(context.Context, calls.Pass) (calls.Started, error) { return calls.Started{}, nil })
	register(p, calls.EnumerateInstances, func(context.Context, calls.Pass) (calls.Enumerated, error) { return calls.Enumerated{}, nil })
	register(p, calls.ObserveSession, func(context.Context, calls.SessionInput) (calls.Observation, error) { return calls.Observation{}, nil })
	register(p, calls.PublishSession, func(context.Context, calls.SessionInput) (calls.Published, error) { return calls.Published{}, nil })
	register(p, calls.ProbeRecords, func(context.Context, calls.ProbeInput) (calls.Probed, error) { return calls.Probed{}, nil })
	register(p, calls.ClosePass, func(context.Context, calls.Pass) (calls.Closed, error) { return calls.Closed{}, nil })
	register(p, calls.StopInstance, func(context.Context, calls.StopInstanceInput) (calls.StopResult, error) {
		return calls.StopResult{}, nil
	})
	register(p, calls.EndServer, func(context.Context, calls.EndInput) error { return nil })
	register(p, calls.AwaitServerEnd, func(context.Context, calls.EndInput) error { return nil })
	register(p, calls.ReportPass, func(context.Context, calls.ReportInput) error { return nil })
	register(p, calls.ReconcileRecords, func(context.Context, calls.ReconcileInput) (calls.Reconciled, error) { return calls.Reconciled{}, nil })
	return p
}

// answer has the store answer, with the records to be guarded.
func (p *pass) answer(records ...calls.GuardedRecord) {
	p.on(calls.TakeGuards, calls.GuardsTaken{Records: records})
	p.done(calls.ReportPass)
	p.env.OnActivity(calls.LocateServer, mock.Anything, mock.Anything).Return(func(context.Context, calls.Pass) (calls.Located, error) {
		p.note(calls.LocateServer)
		return p.located, nil
	}).Maybe()
	p.env.OnActivity(calls.ReconcileRecords, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.ReconcileInput) (calls.Reconciled, error) {
		p.note(calls.ReconcileRecords)
		p.reconciled = append(p.reconciled, in)
		return calls.Reconciled{}, nil
	}).Maybe()
}

func register(p *pass, name string, fn any) {
	p.env.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
}

func (p *pass) note(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order = append(p.order, name)
}

// on makes an activity answer with the result, every time.
func (p *pass) on(name string, result any) {
	p.env.OnActivity(name, mock.Anything, mock.Anything).Run(func(mock.Arguments) { p.note(name) }).Return(result, nil).Maybe()
}

// done makes an activity without a result succeed.
func (p *pass) done(name string) {
	p.env.OnActivity(name, mock.Anything, mock.Anything).Run(func(mock.Arguments) { p.note(name) }).Return(nil).Maybe()
}

// fence makes an activity fail for good.
func (p *pass) fence(name string) {
	failure := []any{errFenced}
	if result, ok := results[name]; ok {
		failure = []any{result, errFenced}
	}
	p.env.OnActivity(name, mock.Anything, mock.Anything).Run(func(mock.Arguments) { p.note(name) }).Return(failure...)
}

// results are those of the activities that fence is used with.
var results = map[string]any{
	calls.TakeGuards: calls.GuardsTaken{}, calls.LocateServer: calls.Located{}, calls.ProbeRecords: calls.Probed{},
	calls.ClosePass: calls.Closed{}, calls.ReconcileRecords: calls.Reconciled{}, calls.StartServer: calls.Started{},
}

// adoptable makes the recorded server ours, with the instances.
func (p *pass) adoptable(live ...calls.LiveInstance) {
	p.on(calls.EvaluateServer, calls.Evaluation{Verdict: recovery.VerdictAdoptable})
	p.on(calls.RotateCredential, calls.Rotated{RotationID: 7})
	p.done(calls.StoreCredential)
	p.done(calls.ConfirmRotation)
	p.on(calls.EnumerateInstances, calls.Enumerated{Instances: live})
}

func (p *pass) run(t *testing.T) calls.AdoptionReport {
	t.Helper()
	p.env.ExecuteWorkflow(TypeAdoption, p.input)
	require.True(t, p.env.IsWorkflowCompleted())
	require.NoError(t, p.env.GetWorkflowError())
	var report calls.AdoptionReport
	require.NoError(t, p.env.GetWorkflowResult(&report))
	return report
}

// outcome of a session at the newest reconciliation that names it.
func (p *pass) outcome(session string) calls.SessionOutcome {
	var found calls.SessionOutcome
	for _, in := range p.reconciled {
		for _, o := range in.Outcomes {
			if o.SessionID == session {
				found = o
			}
		}
	}
	return found
}

func (p *pass) count(name string) (n int) {
	for _, noted := range p.order {
		if noted == name {
			n++
		}
	}
	return n
}

func (p *pass) index(name string) int {
	for i, n := range p.order {
		if n == name {
			return i
		}
	}
	return -1
}

func record(session, execution string) calls.GuardedRecord {
	return calls.GuardedRecord{SessionID: session, ExecutionID: execution}
}

func live(id, session string) calls.LiveInstance {
	return calls.LiveInstance{ID: id, SessionID: session}
}
