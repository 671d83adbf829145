package workflows

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"pgregory.net/rapid"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// what an instance of a drawn pass does.
const (
	answers      = "answers"
	missingValue = "misses a value"
	silent       = "does not answer"
	storeAway    = "cannot be read without Postgres"
	isGone       = "is gone"
	hasEnded     = "has ended"
	hangs        = "hangs"
	comesLate    = "is published too late"
)

// drawn is a control server with its instances, and what became of them.
type drawn struct {
	records   []calls.GuardedRecord
	instances []calls.LiveInstance
	does      map[string]string // by instance
	stoppable map[string]bool
	read      bool // the enumeration is answered

	published map[string]string // instance by session
	asked     map[string]bool   // to stop
}

func drawPass(t *rapid.T) *drawn {
	d := &drawn{
		does: map[string]string{}, stoppable: map[string]bool{}, published: map[string]string{}, asked: map[string]bool{},
		read: rapid.IntRange(0, 9).Draw(t, "read") > 0,
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "sessions") {
		r := record(fmt.Sprintf("s%d", i), fmt.Sprintf("i%d", rapid.IntRange(0, 6).Draw(t, "execution")))
		r.OwnedBy = rapid.SampledFrom([]recovery.SessionOutcome{
			"", "", "", recovery.OutcomeOwnedByResume, recovery.OutcomeOwnedByStop,
		}).Draw(t, "owner")
		d.records = append(d.records, r)
	}
	for i := range rapid.IntRange(0, 7).Draw(t, "instances") {
		in := live(fmt.Sprintf("i%d", i), fmt.Sprintf("s%d", rapid.IntRange(0, 5).Draw(t, "session")))
		in.Stopping = rapid.IntRange(0, 7).Draw(t, "stopping") == 0
		in.Ended = rapid.IntRange(0, 7).Draw(t, "ended") == 0
		d.instances = append(d.instances, in)
		d.does[in.ID] = rapid.SampledFrom([]string{
			answers, answers, answers, missingValue, silent, storeAway, isGone, hasEnded, hangs, comesLate,
		}).Draw(t, "does")
		d.stoppable[in.ID] = rapid.IntRange(0, 3).Draw(t, "stoppable") > 0
	}
	return d
}

func (d *drawn) observe(in calls.SessionInput) (calls.Observation, error) {
	switch d.does[in.InstanceID] {
	case missingValue:
		return calls.Observation{Missing: []string{string(recovery.ValueCommand)}}, nil
	case silent:
		return calls.Observation{}, errUnanswered
	case storeAway:
		return calls.Observation{}, temporal.NewApplicationError("no answer", calls.FailureStoreLost, nil)
	case isGone:
		return calls.Observation{Gone: true}, nil
	case hasEnded:
		return calls.Observation{Ended: true}, nil
	case hangs:
		return calls.Observation{}, activity.ErrResultPending
	default:
		return calls.Observation{}, nil
	}
}

func (d *drawn) publish(in calls.SessionInput) calls.Published {
	if d.does[in.InstanceID] == comesLate {
		return calls.Published{Late: true}
	}
	d.published[in.SessionID] = in.InstanceID
	return calls.Published{State: recovery.StateRunning}
}

func (d *drawn) stop(instance string) (calls.StopResult, error) {
	d.asked[instance] = true
	if !d.stoppable[instance] {
		return calls.StopResult{}, errUnanswered
	}
	return calls.StopResult{Stopped: true}, nil
}

// run has the pass meet the drawn server.
func (d *drawn) run(t *testing.T) *pass {
	p := newPass(t, d.records...)
	p.on(calls.EvaluateServer, calls.Evaluation{Verdict: recovery.VerdictAdoptable})
	p.on(calls.RotateCredential, calls.Rotated{RotationID: 7})
	p.done(calls.StoreCredential)
	p.done(calls.ConfirmRotation)
	p.on(calls.ProbeRecords, calls.Probed{})
	p.env.OnActivity(calls.EnumerateInstances, mock.Anything, mock.Anything).Return(func(context.Context, calls.Pass) (calls.Enumerated, error) {
		if !d.read {
			return calls.Enumerated{}, errUnanswered
		}
		return calls.Enumerated{Instances: d.instances}, nil
	}).Maybe()
	p.env.OnActivity(calls.ObserveSession, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.SessionInput) (calls.Observation, error) {
		return d.observe(in)
	}).Maybe()
	p.env.OnActivity(calls.PublishSession, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.SessionInput) (calls.Published, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return d.publish(in), nil
	}).Maybe()
	p.env.OnActivity(calls.StopInstance, mock.Anything, mock.Anything).Return(func(_ context.Context, in calls.StopInstanceInput) (calls.StopResult, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return d.stop(in.InstanceID)
	}).Maybe()
	p.env.OnActivity(calls.ClosePass, mock.Anything, mock.Anything).Return(func(context.Context, calls.Pass) (calls.Closed, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		var closed calls.Closed
		for session := range d.published {
			closed.Published = append(closed.Published, session)
		}
		slices.Sort(closed.Published)
		return closed, nil
	}).Maybe()
	p.run(t)
	return p
}

// mayLive reports whether an agent of the instance may live after the pass.
func (d *drawn) mayLive(in calls.LiveInstance) bool {
	if d.asked[in.ID] {
		return !d.stoppable[in.ID]
	}
	return d.does[in.ID] != isGone && !(in.Ended && d.does[in.ID] == hasEnded)
}

// S-002.4, S-002.6, S-002.7, S-002.10 to S-002.13, S-002.15, S-002.16, S-003.1,
// S-003.6, S-003.7, W-3, W-7: whatever a control server holds and does during a
// pass, every record ends with an outcome, every instance ends tracked, stopped
// or known about, nothing is stopped on a guess, and neither a repair nor another
// launch is permitted while an agent of the session may live.
func TestAPassIsTrueWhateverItMeets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := drawPass(rt)
		p := d.run(t)
		owned := map[string]bool{}
		for _, r := range d.records {
			settled := p.outcome(r.SessionID)
			require.NotEmpty(rt, settled.Outcome, "every record has an outcome")
			require.False(rt, settled.StopInFlight, "in the end no stop is in flight")
			if r.OwnedBy != "" {
				owned[r.SessionID] = true
				require.Equal(rt, r.OwnedBy, settled.Outcome)
			}
			_, refused := recovery.LaunchAfter(settled.Outcome)
			free := !refused || recovery.RepairFor(settled.Outcome, false) == recovery.RepairRecord
			for _, in := range d.instances {
				if in.SessionID == r.SessionID && free && !owned[r.SessionID] {
					require.False(rt, d.mayLive(in), "%s of a session that is %s", in.ID, settled.Outcome)
				}
			}
			require.Equal(rt, settled.Outcome == recovery.OutcomeUnstopped, d.survivor(r), "a failed stop locks its session")
		}
		if !d.read {
			require.Empty(rt, d.asked, "nothing is stopped on an unread enumeration")
			require.Empty(rt, d.published)
		}
		for _, in := range d.instances {
			tracked := d.published[in.SessionID] == in.ID
			require.False(rt, tracked && d.asked[in.ID], "what is tracked is not stopped")
			require.False(rt, owned[in.SessionID] && (tracked || d.asked[in.ID]), "what is owned is left alone")
			settled := p.outcome(in.SessionID).Outcome
			known := owned[in.SessionID] || settled == recovery.OutcomeUnknown || d.does[in.ID] == isGone ||
				in.Ended && settled == recovery.OutcomeUnstopped // it is kept for the next boot
			require.True(rt, !d.read || tracked || d.asked[in.ID] || known, "%s is neither tracked nor stopped", in.ID)
		}
	})
}

// survivor reports whether an instance of the session could not be stopped.
func (d *drawn) survivor(r calls.GuardedRecord) bool {
	return slices.ContainsFunc(d.instances, func(in calls.LiveInstance) bool {
		return in.SessionID == r.SessionID && d.asked[in.ID] && !d.stoppable[in.ID]
	})
}
