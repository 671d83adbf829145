package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// pass is how a recovery pass is expected to end.
type pass struct {
	verdict    recovery.Verdict
	reason     recovery.RefusalReason
	outcomes   map[string]recovery.SessionOutcome // by session
	attempts   map[string]int                     // by activity
	stopped    int
	failed     int // stops that failed
	again      bool
	unended    bool // a server that should have been ended was not
	unlabelled bool // no search attributes
}

// ends checks the history of a pass that ended by itself.
func ends(want pass) func(*testing.T, history) {
	return func(t *testing.T, h history) {
		t.Helper()
		report := result[calls.AdoptionReport](t, h)
		require.Equal(t, want.verdict, report.Verdict)
		require.Equal(t, want.reason, report.Reason)
		require.Equal(t, want.verdict == recovery.VerdictAdoptable, report.Adopted)
		require.Equal(t, []int{want.stopped, want.failed}, []int{report.Stopped, report.Unstopped})
		require.Equal(t, want.again, report.Again)
		require.Equal(t, want.unended, report.UnendedServer != "")
		got := map[string]recovery.SessionOutcome{}
		for session, o := range outcomes(t, h) {
			require.False(t, o.StopInFlight, "%s is settled in the end", session)
			got[session] = o.Outcome
		}
		if want.outcomes == nil {
			want.outcomes = map[string]recovery.SessionOutcome{}
		}
		require.Equal(t, want.outcomes, got)
		for activity, attempts := range want.attempts {
			require.Equal(t, attempts, h.attempts(activity), "attempts of %s", activity)
		}
		require.Equal(t, !want.unlabelled, h.has(enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES))
	}
}

// records are an inventory of the sessions s1, s2 and so on, whose executions
// are i1, i2 and so on.
func records(sessions ...string) func(context.Context, calls.Pass) (calls.GuardsTaken, error) {
	var taken calls.GuardsTaken
	for _, session := range sessions {
		taken.Records = append(taken.Records, calls.GuardedRecord{SessionID: session, ExecutionID: "i" + session[1:]})
	}
	return answer[calls.Pass](taken)
}

func live(instances ...calls.LiveInstance) func(context.Context, calls.Pass) (calls.Enumerated, error) {
	return answer[calls.Pass](calls.Enumerated{Instances: instances})
}

func instance(id, session string) calls.LiveInstance {
	return calls.LiveInstance{ID: id, SessionID: session}
}

func published(sessions ...string) func(context.Context, calls.Pass) (calls.Closed, error) {
	return answer[calls.Pass](calls.Closed{Published: sessions})
}

// adoptions are the passes that adopt a server and bring sessions back, or not,
// in time.
func adoptions() []branch {
	return []branch{{
		name: "adoption-adopted", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1", "s2", "s3", "s4"),
				calls.EnumerateInstances: live(instance("i1", "s1"), instance("i2", "s2"), calls.LiveInstance{ID: "i3", SessionID: "s3", Ended: true}, instance("i4", "s4")),
				calls.ObserveSession: func(_ context.Context, in calls.SessionInput) (calls.Observation, error) {
					return calls.Observation{Ended: in.SessionID == "s3", Gone: in.SessionID == "s4"}, nil
				},
				calls.PublishSession: func(_ context.Context, in calls.SessionInput) (calls.Published, error) {
					if in.SessionID == "s2" {
						return calls.Published{State: recovery.StateWaitingForInput, AppliedOutcome: true}, nil
					}
					return calls.Published{State: recovery.StateRunning}, nil
				},
				calls.ClosePass: published("s1", "s2", "s3"),
			}
		},
		check: ends(pass{verdict: recovery.VerdictAdoptable, outcomes: map[string]recovery.SessionOutcome{
			"s1": recovery.OutcomeRetracked, "s2": recovery.OutcomeRetracked,
			"s3": recovery.OutcomeAgentEnded, "s4": recovery.OutcomeStale,
		}}),
	}, {
		name: "adoption-joined", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.TakeGuards: answer[calls.Pass](calls.GuardsTaken{Records: []calls.GuardedRecord{
					{SessionID: "s1", ExecutionID: "i1"}, {SessionID: "s2", ExecutionID: "i2"}, {SessionID: "s3", ExecutionID: "i3"},
					{SessionID: "s4", ExecutionID: "i4", OwnedBy: recovery.OutcomeOwnedByResume},
					{SessionID: "s5", ExecutionID: "i5", OwnedBy: recovery.OutcomeOwnedByStop},
				}}),
				calls.EnumerateInstances: live(
					calls.LiveInstance{ID: "i2", SessionID: "s2", Stopping: true}, instance("a1", "s3"), instance("a2", "s3"),
					instance("i4", "s4"), instance("i5", "s5"), instance("i9", "unrecorded"),
				),
			}
		},
		check: ends(pass{verdict: recovery.VerdictAdoptable, stopped: 4, outcomes: map[string]recovery.SessionOutcome{
			"s1": recovery.OutcomeStale, "s2": recovery.OutcomeStale, "s3": recovery.OutcomeAmbiguous,
			"s4": recovery.OutcomeOwnedByResume, "s5": recovery.OutcomeOwnedByStop,
		}}),
	}, {
		// Records of another server than the adopted one: s1's process is gone, s2's
		// may live.
		name: "adoption-elsewhere", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{calls.TakeGuards: answer[calls.Pass](calls.GuardsTaken{Records: []calls.GuardedRecord{
				{SessionID: "s1", ExecutionID: "i1", ServerIdentity: "other"}, {SessionID: "s2", ExecutionID: "i2", ServerIdentity: "other"},
			}})}
		},
		check: ends(pass{verdict: recovery.VerdictAdoptable, outcomes: map[string]recovery.SessionOutcome{
			"s1": recovery.OutcomeStale, "s2": recovery.OutcomeUnknown,
		}}),
	}, {
		name: "adoption-not-enumerable", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1"),
				calls.EnumerateInstances: fail[calls.Pass, calls.Enumerated](errUnanswered),
			}
		},
		check: ends(pass{
			verdict: recovery.VerdictAdoptable, outcomes: map[string]recovery.SessionOutcome{"s1": recovery.OutcomeUnknown},
			attempts: map[string]int{calls.EnumerateInstances: 2, calls.StartServer: 0},
		}),
	}, {
		name: "adoption-duplicate-stopped", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1"),
				calls.EnumerateInstances: live(instance("i1", "s1"), instance("i2", "s1")),
				calls.ClosePass:          published("s1"),
			}
		},
		check: ends(pass{
			verdict: recovery.VerdictAdoptable, stopped: 1,
			outcomes: map[string]recovery.SessionOutcome{"s1": recovery.OutcomeRetracked},
		}),
	}, {
		name: "adoption-duplicate-unstoppable", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1"),
				calls.EnumerateInstances: live(instance("i1", "s1"), instance("i2", "s1")),
				calls.StopInstance: func(_ context.Context, in calls.StopInstanceInput) (calls.StopResult, error) {
					if in.InstanceID == "i2" {
						return calls.StopResult{}, errUnanswered
					}
					return calls.StopResult{Stopped: true}, nil
				},
			}
		},
		check: ends(pass{
			verdict: recovery.VerdictAdoptable, stopped: 1, failed: 1,
			outcomes: map[string]recovery.SessionOutcome{"s1": recovery.OutcomeUnstopped},
			attempts: map[string]int{calls.ObserveSession: 0},
		}),
	}, {
		name: "adoption-missing-value", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1"),
				calls.EnumerateInstances: live(instance("i1", "s1")),
				calls.ObserveSession:     answer[calls.SessionInput](calls.Observation{Missing: []string{string(recovery.ValueCommand)}}),
			}
		},
		check: ends(pass{
			verdict: recovery.VerdictAdoptable, stopped: 1,
			outcomes: map[string]recovery.SessionOutcome{"s1": recovery.OutcomeMissingValue},
		}),
	}, {
		name: "adoption-publish-refused", begin: firstPass,
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.TakeGuards:         records("s1"),
				calls.EnumerateInstances: live(instance("i1", "s1")),
				calls.PublishSession:     fail[calls.SessionInput, calls.Published](refusal(calls.FailureConflict)),
			}
		},
		check: ends(pass{
			verdict: recovery.VerdictAdoptable, stopped: 1,
			outcomes: map[string]recovery.SessionOutcome{"s1": recovery.OutcomeReadFailed},
		}),
	}, {
		name: "adoption-second-pass",
		begin: func(ctx context.Context, s *stage) (client.WorkflowRun, error) {
			return s.engine.StartAdoption(ctx, 2, true)
		},
		peers: func(*stage) map[string]any {
			return map[string]any{
				calls.LocateServer: answer[calls.Pass](calls.Located{Recorded: true, ServerIdentity: "server", InUse: true}),
				calls.TakeGuards: answer[calls.Pass](calls.GuardsTaken{Records: []calls.GuardedRecord{
					{SessionID: "s1", ExecutionID: "i1", OwnedBy: recovery.OutcomeRetracked}, {SessionID: "s2", ExecutionID: "i2"},
				}}),
				calls.EnumerateInstances: live(instance("i1", "s1"), instance("i2", "s2")),
				calls.ClosePass:          published("s1", "s2"),
			}
		},
		check: ends(pass{
			verdict: recovery.VerdictAdoptable, attempts: map[string]int{calls.RotateCredential: 0},
			outcomes: map[string]recovery.SessionOutcome{"s1": recovery.OutcomeRetracked, "s2": recovery.OutcomeRetracked},
		}),
	}, {
		name: "adoption-unlabelled",
		begin: func(ctx context.Context, s *stage) (client.WorkflowRun, error) {
			s.engine.Attributes = false
			return firstPass(ctx, s)
		},
		check: ends(pass{verdict: recovery.VerdictAdoptable, unlabelled: true}),
	}}
}
