package workflows

import (
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// O-001.9, O-002.5, S-002.6, S-003.7: a call that failed because Postgres did not
// answer says nothing of the control server or its agents: no refusal, no second
// server, no stop, and another pass. The same answer of the control server itself
// is one.
func TestAPassWithoutPostgresConcludesNothing(t *testing.T) {
	errStoreLost := temporal.NewApplicationError("Postgres did not answer", calls.FailureStoreLost, nil)
	for _, fails := range []string{calls.EvaluateServer, calls.RotateCredential, calls.ObserveSession} {
		t.Run(fails, func(t *testing.T) {
			p := newPass(t, record("s1", "i1"))
			switch fails {
			case calls.EvaluateServer:
				p.env.OnActivity(fails, mock.Anything, mock.Anything).Return(calls.Evaluation{}, errStoreLost)
			case calls.RotateCredential:
				p.env.OnActivity(fails, mock.Anything, mock.Anything).Return(calls.Rotated{}, errStoreLost)
			default:
				p.env.OnActivity(fails, mock.Anything, mock.Anything).Return(calls.Observation{}, errStoreLost)
			}
			p.adoptable(live("i1", "s1"))
			p.on(calls.StopInstance, calls.StopResult{Stopped: true})
			p.on(calls.StartServer, calls.Started{ServerIdentity: "own"})
			p.on(calls.ClosePass, calls.Closed{})
			report := p.run(t)
			require.True(t, report.Again)
			require.Empty(t, report.Reason)
			require.Equal(t, fails == calls.ObserveSession, report.Adopted)
			require.Equal(t, recovery.OutcomeUnknown, p.outcome("s1").Outcome)
			require.Equal(t, -1, p.index(calls.StartServer))
			require.Equal(t, -1, p.index(calls.StopInstance))
		})
	}
}

// S-002.16: an instance whose stop an earlier boot did not bring to an end is
// stopped again; once it is gone its record is repaired, and otherwise its
// session is locked.
func TestAnUnfinishedStopIsRepeated(t *testing.T) {
	for want, result := range map[recovery.SessionOutcome]error{
		recovery.OutcomeStale: nil, recovery.OutcomeUnstopped: errUnanswered,
	} {
		t.Run(string(want), func(t *testing.T) {
			p := newPass(t, record("s1", "i1"))
			ending := live("i1", "s1")
			ending.Stopping = true
			p.adoptable(ending)
			p.env.OnActivity(calls.StopInstance, mock.Anything, mock.Anything).Return(calls.StopResult{Stopped: result == nil}, result)
			p.on(calls.ClosePass, calls.Closed{})
			p.run(t)
			require.Equal(t, want, p.outcome("s1").Outcome)
			require.False(t, p.outcome("s1").StopInFlight)
		})
	}
}
