package workflows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// S-002.8, S-003.6, W-3: a session that a resume of an earlier boot still starts
// stays with it, whatever the pass finds out about the control server: no
// process of it is looked for, and nothing of it is repaired.
func TestAnOwnedSessionStaysWithItsOwner(t *testing.T) {
	lost := temporal.NewApplicationError("no answer", calls.FailureStoreLost, nil)
	for name, c := range map[string]struct {
		evaluation calls.Evaluation
		err        error
		other      recovery.SessionOutcome
	}{
		"nothing listens": {calls.Evaluation{Verdict: recovery.VerdictFresh}, nil, recovery.OutcomeStale},
		"stranger":        {calls.Evaluation{Verdict: recovery.VerdictRefused, Reason: recovery.RefusedIdentityMismatch}, nil, recovery.OutcomeUnknown},
		"store lost":      {calls.Evaluation{}, lost, recovery.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			owned := record("s2", "i2")
			owned.OwnedBy = recovery.OutcomeOwnedByResume
			p := newPass(t, record("s1", "i1"), owned)
			p.env.OnActivity(calls.EvaluateServer, mock.Anything, mock.Anything).Return(c.evaluation, c.err)
			var probed []string
			p.env.OnActivity(calls.ProbeRecords, mock.Anything, mock.Anything).
				Run(func(args mock.Arguments) { probed = args.Get(1).(calls.ProbeInput).Sessions }).
				Return(calls.Probed{Dead: []string{"s1"}}, nil).Maybe()
			p.on(calls.StartServer, calls.Started{ServerIdentity: "own"})
			p.on(calls.ClosePass, calls.Closed{})
			p.run(t)
			require.Equal(t, recovery.OutcomeOwnedByResume, p.outcome("s2").Outcome)
			require.Equal(t, c.other, p.outcome("s1").Outcome)
			require.NotContains(t, probed, "s2")
		})
	}
}

// W-5, B-24: what operators are shown of a pass is bounded, and says that it is.
func TestTheTableOfAPassIsBounded(t *testing.T) {
	outcomes := make([]calls.SessionOutcome, calls.ReportedSessions+3)
	for i := range outcomes {
		outcomes[i] = calls.SessionOutcome{SessionID: fmt.Sprintf("s%d", i), Outcome: recovery.OutcomeStale}
	}
	table := (&adoption{}).table(outcomes)
	require.Equal(t, calls.ReportedSessions, strings.Count(table, string(recovery.OutcomeStale)))
	require.Contains(t, table, "and 3 more")
}
