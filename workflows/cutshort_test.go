package workflows_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/worker"
	"github.com/kandev/recovery/workflows"
)

// quick are the budgets of branches in which something does not answer.
var quick = worker.Budgets{Deadline: patience, ReadTimeout: 100 * time.Millisecond, ReadRetries: 1, LaunchDeadline: patience}

// soon is a deadline that comes before any read is given up.
var soon = worker.Budgets{Deadline: 700 * time.Millisecond, ReadTimeout: patience, ReadRetries: 1, LaunchDeadline: patience}

// hanging makes the activity hang for the session.
func hanging(s *stage, session string) func(context.Context, calls.SessionInput) (calls.Observation, error) {
	return func(ctx context.Context, in calls.SessionInput) (calls.Observation, error) {
		if in.SessionID == session {
			return calls.Observation{}, s.hang(ctx)
		}
		return calls.Observation{}, nil
	}
}

// cutShort are the passes in which something takes too long, or that another
// pass replaces.
func cutShort() []branch {
	return []branch{{
		name: "adoption-read-failed", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1"),
				calls.EnumerateInstances: live(instance("i1", "s1")),
				calls.ObserveSession:     fail[calls.SessionInput, calls.Observation](errUnanswered),
			}
		},
		check: ends(pass{
			verdict: recovery.VerdictAdoptable, stopped: 1, attempts: map[string]int{calls.ObserveSession: 2},
			outcomes: map[string]recovery.SessionOutcome{"s1": recovery.OutcomeReadFailed},
		}),
	}, {
		// A read that hangs is cut at its timeout and tried again (S-002.13).
		name: "adoption-read-timed-out", begin: firstPass, budgets: quick,
		peers: func(s *stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1", "s2"),
				calls.EnumerateInstances: live(instance("i1", "s1"), instance("i2", "s2")),
				calls.ObserveSession:     hanging(s, "s1"),
				calls.ClosePass:          published("s2"),
			}
		},
		check: ends(pass{
			verdict: recovery.VerdictAdoptable, stopped: 1, attempts: map[string]int{calls.ObserveSession: 3},
			outcomes: map[string]recovery.SessionOutcome{"s1": recovery.OutcomeReadFailed, "s2": recovery.OutcomeRetracked},
		}),
	}, {
		name: "adoption-deadline", begin: firstPass, budgets: soon,
		peers: func(s *stage) map[string]any {
			return map[string]any{
				calls.TakeGuards: records("s1", "s2", "s3", "s4"),
				calls.EnumerateInstances: live(
					instance("i1", "s1"), instance("i2", "s2"), instance("i3", "s3"),
					calls.LiveInstance{ID: "i4", SessionID: "s4", Stopping: true}, instance("i9", "unrecorded"),
				),
				calls.ObserveSession: hanging(s, "s2"),
				calls.PublishSession: func(ctx context.Context, in calls.SessionInput) (calls.Published, error) {
					if in.SessionID == "s3" { // tracked by the deadline, and answered after
						return calls.Published{State: recovery.StateRunning}, s.await(ctx, eventReported)
					}
					return calls.Published{State: recovery.StateRunning}, nil
				},
				calls.StopInstance: func(ctx context.Context, in calls.StopInstanceInput) (calls.StopResult, error) {
					if in.InstanceID != "i9" { // in flight at the first reconciliation
						return calls.StopResult{Stopped: true}, s.await(ctx, eventReported)
					}
					return calls.StopResult{Stopped: true}, nil
				},
				calls.ClosePass: published("s1", "s3"),
			}
		},
		check: func(t *testing.T, h history) {
			ends(pass{verdict: recovery.VerdictAdoptable, stopped: 3, outcomes: map[string]recovery.SessionOutcome{
				"s1": recovery.OutcomeRetracked, "s2": recovery.OutcomeDeadline, "s3": recovery.OutcomeRetracked, "s4": recovery.OutcomeStale,
			}})(t, h)
			reconciled := inputs[calls.ReconcileInput](t, h, calls.ReconcileRecords)
			require.Len(t, reconciled, 2, "at the deadline, and when the stops have ended")
			require.Equal(t, []calls.SessionOutcome{
				{SessionID: "s2", Outcome: recovery.OutcomeDeadline, Instance: "i2", StopInFlight: true},
				{SessionID: "s4", Outcome: recovery.OutcomeInstanceStopping, StopInFlight: true},
			}, slices.DeleteFunc(reconciled[0].Outcomes, func(o calls.SessionOutcome) bool { return !o.StopInFlight }))
		},
	}, {
		name: "adoption-published-late", begin: firstPass, budgets: soon,
		peers: func(s *stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1"),
				calls.EnumerateInstances: live(instance("i1", "s1")),
				calls.PublishSession: func(ctx context.Context, _ calls.SessionInput) (calls.Published, error) {
					return calls.Published{Late: true}, s.await(ctx, eventReported)
				},
			}
		},
		check: ends(pass{
			verdict: recovery.VerdictAdoptable, stopped: 1,
			outcomes: map[string]recovery.SessionOutcome{"s1": recovery.OutcomeDeadline},
		}),
	}, {
		name: "adoption-store-lost", begin: firstPass, budgets: soon,
		peers: func(s *stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1"),
				calls.EnumerateInstances: live(instance("i1", "s1")),
				calls.ObserveSession:     hanging(s, "s1"),
				calls.ClosePass:          answer[calls.Pass](calls.Closed{StoreLost: true}),
			}
		},
		check: ends(pass{verdict: recovery.VerdictAdoptable, again: true, outcomes: unknown}),
	}, {
		// Postgres is away while a session is read.
		name: "adoption-store-lost-reading", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1"),
				calls.EnumerateInstances: live(instance("i1", "s1")),
				calls.ObserveSession: fail[calls.SessionInput, calls.Observation](
					temporal.NewApplicationError("no answer", calls.FailureStoreLost, nil)),
			}
		},
		check: ends(pass{verdict: recovery.VerdictAdoptable, again: true, outcomes: unknown}),
	}, {
		// Postgres is away for longer than the deadline while the replacement is to
		// be stored.
		name: "adoption-store-lost-adopting", begin: firstPass, budgets: soon,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.TakeGuards: records("s1"),
				calls.StoreCredential: func(ctx context.Context, _ calls.RotationInput) error {
					if attempt(ctx) < 4 {
						return errUnanswered
					}
					return nil
				},
			}
		},
		check: ends(pass{
			verdict: recovery.VerdictAdoptable, again: true, outcomes: unknown,
			attempts: map[string]int{calls.StoreCredential: 4, calls.ConfirmRotation: 1, calls.StartServer: 0},
		}),
	}, replaced()}
}

// replaced is the pass whose place the next one takes while a stop of it is in
// flight: the run is terminated and the stop, which it abandoned, runs on.
func replaced() branch {
	return branch{
		name: "adoption-replaced", begin: firstPass,
		peers: func(s *stage) map[string]any {
			return map[string]any{
				calls.EnumerateInstances: live(instance("i9", "unrecorded")),
				calls.StopInstance: func(ctx context.Context, _ calls.StopInstanceInput) (calls.StopResult, error) {
					s.reach(eventHanging)
					return calls.StopResult{Stopped: true}, s.await(ctx, eventReplaced)
				},
			}
		},
		during: func(ctx context.Context, s *stage, first client.WorkflowRun) error {
			if err := s.await(ctx, eventHanging); err != nil {
				return err
			}
			next := *s.engine
			next.BootID = "next"
			if _, err := next.StartAdoption(ctx, 1, true); err != nil {
				return err
			}
			s.reach(eventReplaced)
			return s.client.GetWorkflow(ctx, abandonedStop(s), "").Get(ctx, nil)
		},
		check: func(t *testing.T, h history) {
			require.Equal(t, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, h.closed())
		},
		children: []childBranch{{name: "stop-abandoned", id: abandonedStop, check: stopEnds(calls.StopResult{Stopped: true}, 1)}},
	}
}

func abandonedStop(s *stage) string { return workflows.StopID("i9", s.name+"-1") }
