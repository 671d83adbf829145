package workflows

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// S-002.8, O-002.7, S-003.1: guards come before any contact, the confirmation
// after the durable write, and reconciliation after every outcome.
func TestAdoptionOrder(t *testing.T) {
	p := newPass(t, record("s1", "i1"))
	p.adoptable(live("i1", "s1"))
	p.on(calls.ObserveSession, calls.Observation{})
	p.on(calls.PublishSession, calls.Published{State: recovery.StateRunning})
	p.on(calls.ClosePass, calls.Closed{Published: []string{"s1"}})
	report := p.run(t)

	require.Equal(t, []string{
		calls.TakeGuards, calls.LocateServer, calls.EvaluateServer, calls.RotateCredential, calls.StoreCredential,
		calls.ConfirmRotation, calls.EnumerateInstances, calls.ObserveSession, calls.PublishSession,
		calls.ClosePass, calls.ReconcileRecords, calls.ReportPass,
	}, p.order)
	require.True(t, report.Adopted)
	require.Equal(t, uint64(7), report.RotationID)
	require.Equal(t, 1, report.Counts[recovery.OutcomeRetracked])
}

// O-001.4, O-001.6, O-001.8, S-003.6, S-005.6: what each verdict leads to. Nothing is
// stopped in any of them.
func TestAdoptionWithoutAdoptableServer(t *testing.T) {
	cases := []struct {
		name       string
		evaluation calls.Evaluation
		err        error
		want       recovery.SessionOutcome // of a session whose recorded process is gone
		reason     recovery.RefusalReason
	}{
		{"nothing listens", calls.Evaluation{Verdict: recovery.VerdictFresh}, nil, recovery.OutcomeStale, ""},
		{"silent", calls.Evaluation{}, errUnanswered, recovery.OutcomeStale, recovery.RefusedNoAnswer},
		{"stranger", calls.Evaluation{Verdict: recovery.VerdictRefused, Reason: recovery.RefusedIdentityMismatch}, nil, recovery.OutcomeUnknown, recovery.RefusedIdentityMismatch},
		{"no proof", calls.Evaluation{Verdict: recovery.VerdictRefused, Reason: recovery.RefusedAuthenticationFailure}, nil, recovery.OutcomeUnknown, recovery.RefusedAuthenticationFailure},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPass(t, record("s1", "i1"))
			p.env.OnActivity(calls.EvaluateServer, mock.Anything, mock.Anything).Return(c.evaluation, c.err)
			p.on(calls.StartServer, calls.Started{ServerIdentity: "own"})
			p.on(calls.ProbeRecords, calls.Probed{Dead: []string{"s1"}})
			p.on(calls.ClosePass, calls.Closed{})
			report := p.run(t)
			require.False(t, report.Adopted)
			require.Equal(t, c.reason, report.Reason)
			require.Equal(t, c.want, p.outcome("s1").Outcome)
			require.NotEqual(t, -1, p.index(calls.StartServer), "an own server is started")
			require.Equal(t, -1, p.index(calls.RotateCredential), "nothing else is said to the recorded one")
			require.Zero(t, report.Stopped+report.Unstopped)
		})
	}
}

// O-001.8: with no record nothing is contacted.
func TestAdoptionWithoutRecord(t *testing.T) {
	p := newPass(t)
	p.located = calls.Located{}
	p.on(calls.EvaluateServer, calls.Evaluation{Verdict: recovery.VerdictAdoptable})
	p.on(calls.StartServer, calls.Started{ServerIdentity: "own"})
	p.on(calls.ClosePass, calls.Closed{})
	report := p.run(t)
	require.Empty(t, report.Reason)
	require.Equal(t, []string{
		calls.TakeGuards, calls.LocateServer, calls.ClosePass, calls.ReconcileRecords, calls.StartServer, calls.ReportPass,
	}, p.order)
}

// S-002.12: adopted but not enumerable: nothing recovered, nothing stopped, no
// second server.
func TestAdoptionNotEnumerable(t *testing.T) {
	p := newPass(t, record("s1", "i1"))
	p.on(calls.EvaluateServer, calls.Evaluation{Verdict: recovery.VerdictAdoptable})
	p.on(calls.RotateCredential, calls.Rotated{RotationID: 7})
	p.done(calls.StoreCredential)
	p.done(calls.ConfirmRotation)
	p.env.OnActivity(calls.EnumerateInstances, mock.Anything, mock.Anything).Return(calls.Enumerated{}, errUnanswered)
	p.on(calls.ClosePass, calls.Closed{})
	report := p.run(t)
	require.True(t, report.Adopted)
	require.False(t, report.Enumerated)
	require.Equal(t, recovery.OutcomeUnknown, p.outcome("s1").Outcome)
	require.Equal(t, -1, p.index(calls.StartServer))
	require.Zero(t, report.Stopped+report.Unstopped)
}

// S-002.6, S-002.7, S-002.10, W-3: what the join condemns is stopped, what it
// settles is reported, and what a resume owns is left alone.
func TestAdoptionFollowsTheJoin(t *testing.T) {
	owned := calls.GuardedRecord{SessionID: "s4", ExecutionID: "i7", OwnedBy: recovery.OutcomeOwnedByResume}
	p := newPass(t, record("s1", "i1"), record("s2", "i9"), record("s3", "i4"), owned)
	p.adoptable(live("i1", "s1"), live("i2", "s1"), live("i5", "s2"), live("i6", "s2"), live("i8", "gone"), live("i7", "s4"))
	var stopped []string
	p.env.OnActivity(calls.StopInstance, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.StopInstanceInput) (calls.StopResult, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		stopped = append(stopped, in.InstanceID)
		return calls.StopResult{Stopped: true}, nil
	})
	p.on(calls.ObserveSession, calls.Observation{})
	p.on(calls.PublishSession, calls.Published{State: recovery.StateRunning})
	p.on(calls.ClosePass, calls.Closed{Published: []string{"s1"}})
	report := p.run(t)
	require.ElementsMatch(t, []string{"i2", "i5", "i6", "i8"}, stopped)
	require.Equal(t, recovery.OutcomeRetracked, p.outcome("s1").Outcome)
	require.Equal(t, recovery.OutcomeAmbiguous, p.outcome("s2").Outcome)
	require.Equal(t, recovery.OutcomeStale, p.outcome("s3").Outcome)
	require.Equal(t, recovery.OutcomeOwnedByResume, p.outcome("s4").Outcome)
	require.Equal(t, 4, report.Stopped)
}

// S-002.15, S-002.16: the budget is MaximumAttempts; a loser that cannot be
// stopped blocks its winner, which is stopped too.
func TestAdoptionUnstoppableLoserBlocksItsWinner(t *testing.T) {
	p := newPass(t, record("s1", "i1"))
	p.adoptable(live("i1", "s1"), live("i2", "s1"))
	attempts := map[string]int{}
	p.env.OnActivity(calls.StopInstance, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.StopInstanceInput) (calls.StopResult, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		attempts[in.InstanceID]++
		if in.InstanceID == "i2" {
			return calls.StopResult{}, errUnanswered
		}
		return calls.StopResult{Stopped: true}, nil
	})
	p.on(calls.ClosePass, calls.Closed{})
	report := p.run(t)
	require.Equal(t, map[string]int{"i1": 1, "i2": 3}, attempts)
	require.Equal(t, recovery.OutcomeUnstopped, p.outcome("s1").Outcome)
	require.Equal(t, "i2", p.outcome("s1").Instance)
	require.Equal(t, 1, report.Unstopped)
	require.Equal(t, -1, p.index(calls.ObserveSession))
}

// S-002.15, S-003.7: a winner that still waits for a loser at the deadline is
// stopped as well when another loser could not be.
func TestAdoptionDeadlineStopsABlockedWinner(t *testing.T) {
	p := newPass(t, record("s1", "i1"))
	p.input.Deadline = time.Second
	p.adoptable(live("i1", "s1"), live("i2", "s1"), live("i3", "s1"))
	p.env.OnActivity(calls.StopInstance, mock.Anything, stopOf("i2")).Return(calls.StopResult{}, errUnanswered)
	p.env.OnActivity(calls.StopInstance, mock.Anything, stopOf("i3")).After(2*p.input.Deadline).Return(calls.StopResult{Stopped: true}, nil)
	p.env.OnActivity(calls.StopInstance, mock.Anything, stopOf("i1")).Return(calls.StopResult{Stopped: true}, nil).Once()
	p.on(calls.ClosePass, calls.Closed{})
	report := p.run(t)
	p.env.AssertExpectations(t)
	require.Equal(t, recovery.OutcomeUnstopped, p.outcome("s1").Outcome)
	require.Equal(t, "i2", p.outcome("s1").Instance)
	require.Equal(t, 2, report.Stopped)
	require.Equal(t, 1, report.Unstopped)
	require.Equal(t, -1, p.index(calls.ObserveSession))
}

// S-002.16: an agent that could not be stopped locks its session, also when an
// ended instance of the same session is taken over after that.
func TestATakeoverDoesNotUnlockASession(t *testing.T) {
	p := newPass(t, record("s1", "i1"))
	ended, leftover := live("i1", "s1"), live("i2", "s1")
	ended.Ended, leftover.Ended = true, true
	p.adoptable(ended, leftover)
	p.on(calls.ObserveSession, calls.Observation{Ended: true})
	p.env.OnActivity(calls.StopInstance, mock.Anything, mock.Anything).Return(calls.StopResult{}, errUnanswered)
	p.env.OnActivity(calls.PublishSession, mock.Anything, mock.Anything).
		After(10*time.Second).Return(calls.Published{State: recovery.StateInterrupted}, nil)
	p.on(calls.ClosePass, calls.Closed{})
	report := p.run(t)
	require.Equal(t, recovery.OutcomeUnstopped, p.outcome("s1").Outcome)
	require.Equal(t, "i2", p.outcome("s1").Instance)
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeUnstopped: 1}, report.Counts)
}

func stopOf(instance string) any {
	return mock.MatchedBy(func(in calls.StopInstanceInput) bool { return in.InstanceID == instance })
}

// S-002.4, S-002.11, S-002.13: a missing value and an exhausted read stop that
// instance, each with its own outcome, and touch no other session.
func TestAdoptionReconstructionFailures(t *testing.T) {
	p := newPass(t, record("s1", "i1"), record("s2", "i2"), record("s3", "i3"))
	p.adoptable(live("i1", "s1"), live("i2", "s2"), live("i3", "s3"))
	reads := map[string]int{}
	p.env.OnActivity(calls.ObserveSession, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.SessionInput) (calls.Observation, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		reads[in.SessionID]++
		switch in.SessionID {
		case "s1":
			return calls.Observation{Missing: []string{string(recovery.ValueCommand)}}, nil
		case "s2":
			return calls.Observation{}, errUnanswered
		default:
			return calls.Observation{}, nil
		}
	})
	p.on(calls.StopInstance, calls.StopResult{Stopped: true})
	p.on(calls.PublishSession, calls.Published{State: recovery.StateRunning})
	p.on(calls.ClosePass, calls.Closed{Published: []string{"s3"}})
	report := p.run(t)
	require.Equal(t, recovery.OutcomeMissingValue, p.outcome("s1").Outcome)
	require.Equal(t, string(recovery.ValueCommand), p.outcome("s1").Detail)
	require.Equal(t, recovery.OutcomeReadFailed, p.outcome("s2").Outcome)
	require.Equal(t, recovery.OutcomeRetracked, p.outcome("s3").Outcome)
	require.Equal(t, map[string]int{"s1": 1, "s2": 3, "s3": 1}, reads)
	require.Equal(t, 2, report.Stopped)
}

// O-002.5: a store failure after the rotation is waited out; the rotation is
// not confirmed before, and no second server is started.
func TestAdoptionStoresTheReplacementWhateverItTakes(t *testing.T) {
	p := newPass(t)
	p.on(calls.EvaluateServer, calls.Evaluation{Verdict: recovery.VerdictAdoptable})
	p.on(calls.RotateCredential, calls.Rotated{RotationID: 7})
	failures := 0
	p.env.OnActivity(calls.StoreCredential, mock.Anything, mock.Anything).Return(func(context.Context, calls.RotationInput) error {
		p.note(calls.StoreCredential)
		if failures++; failures < 6 {
			return errUnanswered
		}
		return nil
	})
	p.done(calls.ConfirmRotation)
	p.on(calls.EnumerateInstances, calls.Enumerated{})
	p.on(calls.ClosePass, calls.Closed{})
	report := p.run(t)
	require.True(t, report.Adopted)
	require.Equal(t, 6, failures)
	require.Greater(t, p.index(calls.ConfirmRotation), p.index(calls.StoreCredential)+4)
	require.Equal(t, -1, p.index(calls.StartServer))
}

// O-002.5: a server that does not rotate is not adopted, and nothing else is
// said to it.
func TestAdoptionRotationRefused(t *testing.T) {
	for name, result := range map[string]struct {
		rotated calls.Rotated
		err     error
	}{"refused": {calls.Rotated{Refused: true}, nil}, "silent": {calls.Rotated{}, errUnanswered}} {
		t.Run(name, func(t *testing.T) {
			p := newPass(t, record("s1", "i1"))
			p.on(calls.EvaluateServer, calls.Evaluation{Verdict: recovery.VerdictAdoptable})
			p.env.OnActivity(calls.RotateCredential, mock.Anything, mock.Anything).Return(result.rotated, result.err)
			p.on(calls.StartServer, calls.Started{ServerIdentity: "own"})
			p.on(calls.ClosePass, calls.Closed{})
			report := p.run(t)
			require.Equal(t, recovery.RefusedCredentialRotationFailure, report.Reason)
			require.Equal(t, recovery.OutcomeUnknown, p.outcome("s1").Outcome)
			require.Equal(t, -1, p.index(calls.StoreCredential))
		})
	}
}

// S-003.7: the deadline cuts what is unread, stops its instances after the pass
// was closed, spares what was tracked by then, and reconciles without waiting
// for the stops.
func TestAdoptionDeadline(t *testing.T) {
	p := newPass(t, record("s1", "i1"), record("s2", "i2"))
	p.input.Deadline = time.Second
	p.input.ReadTimeout, p.input.ReadRetries = 10*time.Second, 0
	p.adoptable(live("i1", "s1"), live("i2", "s2"))
	p.env.OnActivity(calls.ObserveSession, mock.Anything, mock.Anything).Return(func(ctx context.Context, in calls.SessionInput) (calls.Observation, error) {
		if in.SessionID == "s1" {
			return calls.Observation{}, nil
		}
		<-ctx.Done()
		return calls.Observation{}, errors.New("cut")
	})
	p.on(calls.PublishSession, calls.Published{State: recovery.StateRunning})
	p.on(calls.ClosePass, calls.Closed{Published: []string{"s1"}})
	var stopped []string
	p.env.OnActivity(calls.StopInstance, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.StopInstanceInput) (calls.StopResult, error) {
		p.note(calls.StopInstance)
		stopped = append(stopped, in.InstanceID)
		return calls.StopResult{Stopped: true}, nil
	})
	p.run(t)
	require.Equal(t, []string{"i2"}, stopped)
	require.Greater(t, p.index(calls.StopInstance), p.index(calls.ClosePass))
	require.Equal(t, recovery.OutcomeRetracked, p.outcome("s1").Outcome)
	require.Equal(t, recovery.OutcomeDeadline, p.outcome("s2").Outcome)
	require.Len(t, p.reconciled, 2, "at the deadline, and again when the stop has ended")
	require.False(t, p.outcome("s2").StopInFlight)
}

// S-003.7: a pass that lost Postgres stops nothing at its deadline.
func TestAdoptionDeadlineWithoutPostgresStopsNothing(t *testing.T) {
	p := newPass(t, record("s1", "i1"))
	p.input.Deadline = time.Second
	p.input.ReadTimeout, p.input.ReadRetries = 10*time.Second, 0
	p.adoptable(live("i1", "s1"))
	p.env.OnActivity(calls.ObserveSession, mock.Anything, mock.Anything).Return(func(ctx context.Context, _ calls.SessionInput) (calls.Observation, error) {
		<-ctx.Done()
		return calls.Observation{}, errors.New("cut")
	})
	p.on(calls.ClosePass, calls.Closed{StoreLost: true})
	report := p.run(t)
	require.Equal(t, recovery.OutcomeUnknown, p.outcome("s1").Outcome)
	require.Zero(t, report.Stopped+report.Unstopped)
	require.True(t, report.Again)
}

// S-003.7, W-8: a deadline that is noticed long after it was due means that
// Temporal was away: nothing is stopped, and another pass is due.
func TestAdoptionDeadlineWithoutTemporalStopsNothing(t *testing.T) {
	p := newPass(t, record("s1", "i1"))
	p.input.Deadline = time.Second
	p.input.ReadTimeout, p.input.ReadRetries = 10*time.Second, 0
	p.adoptable(live("i1", "s1"))
	p.env.OnActivity(calls.ObserveSession, mock.Anything, mock.Anything).Return(calls.Observation{}, activity.ErrResultPending)
	// The attempts to close the pass take longer than the slack.
	attempts := 0
	p.env.OnActivity(calls.ClosePass, mock.Anything, mock.Anything).Return(func(context.Context, calls.Pass) (calls.Closed, error) {
		if attempts++; attempts < 8 {
			return calls.Closed{}, errUnanswered
		}
		return calls.Closed{}, nil
	})
	report := p.run(t)
	require.Equal(t, recovery.OutcomeUnknown, p.outcome("s1").Outcome)
	require.Zero(t, report.Stopped+report.Unstopped)
	require.True(t, report.Again)
}

// S-002.8, S-002.9: a second pass of a boot goes on with the server that the
// first one adopted, and leaves alone what is tracked already.
func TestASecondPassObservesWhatIsTracked(t *testing.T) {
	tracked := calls.GuardedRecord{SessionID: "s1", ExecutionID: "i1", OwnedBy: recovery.OutcomeRetracked}
	p := newPass(t, tracked, record("s2", "i2"))
	p.located.InUse = true
	p.adoptable(live("i1", "s1"), live("i2", "s2"))
	p.on(calls.ObserveSession, calls.Observation{})
	p.on(calls.PublishSession, calls.Published{State: recovery.StateRunning})
	p.on(calls.ClosePass, calls.Closed{Published: []string{"s1", "s2"}})
	report := p.run(t)
	require.Equal(t, -1, p.index(calls.RotateCredential))
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 2}, report.Counts)
	require.Zero(t, report.Stopped)
}

// O-004.1, O-004.2, O-004.3, O-004.4: a server that proved to be ours and lacks a capability is
// ended, its records are repaired, and only then an own one is started.
func TestAdoptionIncompatibleServerIsEnded(t *testing.T) {
	p := newPass(t, record("s1", "i1"))
	p.on(calls.EvaluateServer, incompatible)
	p.done(calls.EndServer)
	p.done(calls.AwaitServerEnd)
	p.on(calls.ProbeRecords, calls.Probed{Dead: []string{"s1"}})
	p.on(calls.ClosePass, calls.Closed{})
	p.on(calls.StartServer, calls.Started{ServerIdentity: "own"})
	report := p.run(t)
	require.Equal(t, []string{
		calls.TakeGuards, calls.LocateServer, calls.EvaluateServer, calls.EndServer, calls.AwaitServerEnd,
		calls.ClosePass, calls.ReconcileRecords, calls.StartServer, calls.ReportPass,
	}, p.order)
	require.Equal(t, recovery.RefusedCapabilityIncompatibility, report.Reason)
	require.Equal(t, incompatible.Missing, report.Missing)
	require.Equal(t, recovery.OutcomeStale, p.outcome("s1").Outcome)
}

var incompatible = calls.Evaluation{
	Verdict: recovery.VerdictIncompatible, Reason: recovery.RefusedCapabilityIncompatibility,
	Advertised: []string{"old"}, Missing: []string{"new"},
}

// O-004.7: a server that could not be ended is named, asked no more, and
// nothing of it is repaired; the own server is started all the same.
func TestAdoptionUnendedServerRepairsNothing(t *testing.T) {
	for name, step := range map[string]string{"shutdown fails": calls.EndServer, "it stays": calls.AwaitServerEnd} {
		t.Run(name, func(t *testing.T) {
			p := newPass(t, record("s1", "i1"))
			p.on(calls.EvaluateServer, incompatible)
			attempts := 0
			p.env.OnActivity(step, mock.Anything, mock.Anything).Return(func(context.Context, calls.EndInput) error {
				attempts++
				return errUnanswered
			})
			p.done(calls.EndServer)
			p.on(calls.ProbeRecords, calls.Probed{Dead: []string{"s1"}})
			p.on(calls.ClosePass, calls.Closed{})
			p.on(calls.StartServer, calls.Started{ServerIdentity: "own"})
			report := p.run(t)
			require.Equal(t, "server", report.UnendedServer)
			require.Equal(t, calls.FailureUnanswered, report.UnendedReason)
			require.Equal(t, recovery.OutcomeUnknown, p.outcome("s1").Outcome)
			require.NotEqual(t, -1, p.index(calls.StartServer))
			if step == calls.EndServer {
				require.Equal(t, 3, attempts, "the budget of a stop")
			}
		})
	}
}

// S-005.1, S-005.5: with the capability off nothing is adopted; a detached
// server from earlier is ended once it has proven to be ours, and left alone
// otherwise.
func TestAdoptionOff(t *testing.T) {
	stranger := calls.Evaluation{Verdict: recovery.VerdictRefused, Reason: recovery.RefusedAuthenticationFailure}
	for name, c := range map[string]struct {
		evaluation calls.Evaluation
		ended      bool
		outcome    recovery.SessionOutcome
	}{
		"ours":     {calls.Evaluation{Verdict: recovery.VerdictAdoptable}, true, recovery.OutcomeStale},
		"older":    {incompatible, true, recovery.OutcomeStale},
		"stranger": {stranger, false, recovery.OutcomeStale}, // judged by process ids alone (S-003.6)
		"gone":     {calls.Evaluation{Verdict: recovery.VerdictFresh}, false, recovery.OutcomeStale},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPass(t, record("s1", "i1"))
			p.input.Survival = false
			p.on(calls.EvaluateServer, c.evaluation)
			p.done(calls.EndServer)
			p.done(calls.AwaitServerEnd)
			p.on(calls.ProbeRecords, calls.Probed{Dead: []string{"s1"}})
			p.on(calls.ClosePass, calls.Closed{})
			p.on(calls.StartServer, calls.Started{ServerIdentity: "own"})
			report := p.run(t)
			require.Equal(t, recovery.VerdictOff, report.Verdict)
			require.False(t, report.Adopted)
			require.Equal(t, c.ended, p.index(calls.EndServer) != -1)
			require.Equal(t, -1, p.index(calls.RotateCredential))
			require.Equal(t, c.outcome, p.outcome("s1").Outcome)
		})
	}
}
