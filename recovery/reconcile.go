package recovery

// Repair says what reconciliation does with one record, once its session has
// an outcome.
type Repair string

// Repairs. RepairRecord clears the execution from the record, keeps resume
// token and worktree, and leaves the session resumable. RepairLeave changes
// nothing.
const (
	RepairRecord Repair = "repair"
	RepairLeave  Repair = "leave"
)

// RepairFor decides, from the outcome alone, what becomes of the record. Only
// an outcome that proves that no agent of the session is left permits a repair;
// what is live, owned by somebody else or unknown is left as it is (S-003.1 to
// S-003.6).
func RepairFor(outcome SessionOutcome, stopInFlight bool) Repair {
	if stopInFlight {
		return RepairLeave
	}
	switch outcome {
	case OutcomeStale, OutcomeAmbiguous, OutcomeMissingValue, OutcomeReadFailed, OutcomeDeadline:
		return RepairRecord
	default:
		return RepairLeave
	}
}

// LaunchAfter decides what a launch of the session meets after the pass.
// Unknown sessions are refused retryably and judged anew per request; an
// unstopped agent locks its session for this backend's life (S-002.16).
func LaunchAfter(outcome SessionOutcome) (refusal LaunchRefusal, refused bool) {
	switch outcome {
	case OutcomeRetracked, OutcomeAgentEnded:
		return LaunchRefusedTracked, true
	case OutcomeUnstopped:
		return LaunchRefusedUnstopped, true
	case OutcomeUnknown, OutcomeInstanceStopping:
		return LaunchRefusedRecovering, true
	default:
		return "", false
	}
}
