package workflows_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/worker"
	"github.com/kandev/recovery/workflows"
)

// branch is one way that a workflow can go. It is run against a real server
// with the real workflows and peers that answer as it needs. Its name is also
// that of its installation, boot and session, so that no branch meets another.
type branch struct {
	name    string // "<workflow>-<what happens>"
	budgets worker.Budgets
	// peers are the activities that do not answer as everyday does.
	peers func(s *stage) map[string]any
	begin func(ctx context.Context, s *stage) (client.WorkflowRun, error)
	// during is what happens to the workflow meanwhile.
	during func(ctx context.Context, s *stage, run client.WorkflowRun) error
	// check says whether a history is that of this branch.
	check func(t *testing.T, h history)
	// children are workflows of the same run whose histories are kept too.
	children []childBranch
}

// childBranch is a workflow that another one started.
type childBranch struct {
	name  string
	id    func(s *stage) string
	check func(t *testing.T, h history)
}

// stage is where one branch runs.
type stage struct {
	branch
	client client.Client
	engine *worker.Engine
	events map[string]*event // by name
	over   chan struct{}     // lets go what hangs
}

// event is something that happens once, and that others wait for.
type event struct {
	once    sync.Once
	reached chan struct{}
}

// Events of a stage, on which one peer waits for another.
const (
	eventHanging  = "hanging"  // a peer does not answer
	eventReported = "reported" // the pass has reported
	eventReplaced = "replaced" // a new boot's pass has taken its place
)

func newStage(b branch, c client.Client) *stage {
	s := &stage{branch: b, client: c, events: map[string]*event{}, over: make(chan struct{})}
	for _, name := range []string{eventHanging, eventReported, eventReplaced} {
		s.events[name] = &event{reached: make(chan struct{})}
	}
	budgets := b.budgets
	if budgets == (worker.Budgets{}) {
		budgets = worker.Budgets{Deadline: patience, ReadTimeout: patience, ReadRetries: 1, LaunchDeadline: patience}
	}
	s.engine = &worker.Engine{Client: c, Installation: b.name, BootID: b.name, Budgets: budgets, Attributes: true}
	return s
}

// reach lets everything go on that awaits the event.
func (s *stage) reach(name string) {
	e := s.events[name]
	e.once.Do(func() { close(e.reached) })
}

// await waits until the event was reached.
func (s *stage) await(ctx context.Context, name string) error {
	select {
	case <-s.events[name].reached:
		return nil
	case <-s.over:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hang does not answer within the timeout of the activity.
func (s *stage) hang(ctx context.Context) error {
	s.reach(eventHanging)
	select {
	case <-ctx.Done():
	case <-s.over:
	}
	return ctx.Err()
}

// patience is more than any branch takes.
const patience = 60 * time.Second

var errUnanswered = temporal.NewApplicationError("no answer", calls.FailureUnanswered, nil)

// refusal is a failure that is not retried.
func refusal(failure string) error {
	return temporal.NewNonRetryableApplicationError("refused", failure, nil)
}

// answer is an activity that always answers the same.
func answer[In, Out any](out Out) func(context.Context, In) (Out, error) {
	return func(context.Context, In) (Out, error) { return out, nil }
}

// fail is an activity that always fails.
func fail[In, Out any](err error) func(context.Context, In) (Out, error) {
	return func(context.Context, In) (Out, error) {
		var none Out
		return none, err
	}
}

// done is an activity without a result that ends with err.
func done[In any](err error) func(context.Context, In) error {
	return func(context.Context, In) error { return err }
}

// attempt is the number of the attempt that runs in ctx, from one.
func attempt(ctx context.Context) int32 { return activity.GetInfo(ctx).Attempt }

// everyday are peers with whom a pass adopts a server without sessions, a stop
// succeeds and an agent starts.
func everyday(s *stage) map[string]any {
	return map[string]any{
		calls.TakeGuards:         answer[calls.Pass](calls.GuardsTaken{}),
		calls.LocateServer:       answer[calls.Pass](calls.Located{Recorded: true, ServerIdentity: "server"}),
		calls.EvaluateServer:     answer[calls.EvaluateInput](calls.Evaluation{Verdict: recovery.VerdictAdoptable}),
		calls.RotateCredential:   answer[calls.RotateInput](calls.Rotated{RotationID: 7}),
		calls.StoreCredential:    done[calls.RotationInput](nil),
		calls.ConfirmRotation:    done[calls.RotationInput](nil),
		calls.StartServer:        answer[calls.Pass](calls.Started{ServerIdentity: "own"}),
		calls.EndServer:          done[calls.EndInput](nil),
		calls.AwaitServerEnd:     done[calls.EndInput](nil),
		calls.EnumerateInstances: answer[calls.Pass](calls.Enumerated{}),
		calls.ObserveSession:     answer[calls.SessionInput](calls.Observation{}),
		calls.PublishSession:     answer[calls.SessionInput](calls.Published{State: recovery.StateRunning}),
		calls.ProbeRecords:       answer[calls.ProbeInput](calls.Probed{Dead: []string{"s1"}}),
		calls.ClosePass:          answer[calls.Pass](calls.Closed{}),
		calls.ReconcileRecords:   answer[calls.ReconcileInput](calls.Reconciled{}),
		calls.ReportPass: func(context.Context, calls.ReportInput) error {
			s.reach(eventReported)
			return nil
		},
		calls.StopInstance: answer[calls.StopInstanceInput](calls.StopResult{Stopped: true}),
		calls.FinishStop:   done[calls.FinishStopInput](nil),
		calls.BeginStart: func(_ context.Context, in calls.StartIntent) (calls.StartIntent, error) {
			in.Generation, in.Prior = 1, recovery.StateCreated
			return in, nil
		},
		calls.CreateInstance: done[calls.StartIntent](nil),
		calls.AwaitReady:     done[calls.StartIntent](nil),
		calls.PublishStarted: done[calls.StartIntent](nil),
		calls.AbandonStart: func(_ context.Context, in calls.AbandonInput) (calls.ResumeResult, error) {
			return calls.ResumeResult{State: recovery.StateFailed, Cause: in.Cause}, nil
		},
	}
}

// branches are all that are recorded.
func branches() []branch {
	all := adoptions()
	all = append(all, endings()...)
	all = append(all, cutShort()...)
	all = append(all, stops()...)
	return append(all, resumes()...)
}

// firstPass starts the first pass of a boot.
func firstPass(ctx context.Context, s *stage) (client.WorkflowRun, error) {
	return s.engine.StartAdoption(ctx, 1, true)
}

// userStop starts a user's stop.
func userStop(ctx context.Context, s *stage) (client.WorkflowRun, error) {
	if err := s.engine.StartStop(ctx, s.name, "i1", s.name); err != nil {
		return nil, err
	}
	return s.client.GetWorkflow(ctx, workflows.StopID("i1", s.name), ""), nil
}

// resume starts the session's agent.
func resume(ctx context.Context, s *stage) (client.WorkflowRun, error) {
	if err := s.engine.StartResume(ctx, s.name); err != nil {
		return nil, err
	}
	return s.client.GetWorkflow(ctx, workflows.ResumeID(s.name), ""), nil
}
