package recovery

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// S-003.1 to S-003.6, S-002.12, S-002.16: only a proof of absence permits a
// repair, and what is not proven absent never gets a second agent.
func TestRepairAndLaunchFollowTheOutcome(t *testing.T) {
	cases := []struct {
		outcome SessionOutcome
		repair  Repair
		refusal LaunchRefusal
	}{
		{OutcomeRetracked, RepairLeave, LaunchRefusedTracked},
		{OutcomeAgentEnded, RepairLeave, LaunchRefusedTracked},
		{OutcomeStale, RepairRecord, ""},
		{OutcomeAmbiguous, RepairRecord, ""},
		{OutcomeMissingValue, RepairRecord, ""},
		{OutcomeReadFailed, RepairRecord, ""},
		{OutcomeDeadline, RepairRecord, ""},
		{OutcomeInstanceStopping, RepairLeave, LaunchRefusedRecovering},
		{OutcomeUnstopped, RepairLeave, LaunchRefusedUnstopped},
		{OutcomeUnknown, RepairLeave, LaunchRefusedRecovering},
		{OutcomeOwnedByResume, RepairLeave, ""},
		{OutcomeOwnedByStop, RepairLeave, ""},
	}
	for _, c := range cases {
		t.Run(string(c.outcome), func(t *testing.T) {
			require.Equal(t, c.repair, RepairFor(c.outcome, false))
			require.Equal(t, RepairLeave, RepairFor(c.outcome, true), "a stop in flight is unknown")
			refusal, refused := LaunchAfter(c.outcome)
			require.Equal(t, c.refusal, refusal)
			require.Equal(t, c.refusal != "", refused)
		})
	}
}
