package recovery

// RefusalReason says why a recorded control server was not adopted. At most
// one is recorded per attempt, the first that applies (O-001.6).
type RefusalReason string

// Refusal reasons, in the order in which they are checked.
const (
	RefusedNoAnswer                  RefusalReason = "no_answer"
	RefusedIdentityMismatch          RefusalReason = "identity_mismatch"
	RefusedCredentialUnavailable     RefusalReason = "credential_unavailable"
	RefusedAuthenticationFailure     RefusalReason = "authentication_failure"
	RefusedCapabilityIncompatibility RefusalReason = "capability_incompatibility"
	RefusedCredentialRotationFailure RefusalReason = "credential_rotation_failure"
)

// Verdict is the result of evaluating a recorded control server.
type Verdict string

// Verdicts. VerdictFresh means that nothing was there to adopt: start an own
// server, nothing recovered, no refusal reason (O-001.8). VerdictRefused
// carries a RefusalReason: the server is left alone and an own one is started
// on another port (O-001.4). VerdictIncompatible is a server that proved to be
// ours but lacks a required capability (O-004.3). VerdictOff means that the
// capability is off, so that nothing was contacted for adoption.
// VerdictUndecided: Postgres was away before there was another; nothing is
// concluded, no server is started, and another pass follows.
const (
	VerdictAdoptable    Verdict = "adoptable"
	VerdictFresh        Verdict = "fresh"
	VerdictRefused      Verdict = "refused"
	VerdictIncompatible Verdict = "incompatible"
	VerdictOff          Verdict = "off"
	VerdictUndecided    Verdict = "undecided"
)

// SessionOutcome says what one recovery pass did with one session. Every
// standalone record has one before reconciliation begins (S-003.1).
type SessionOutcome string

// Session outcomes.
const (
	// OutcomeRetracked: the surviving instance is tracked again.
	OutcomeRetracked SessionOutcome = "retracked"
	// OutcomeAgentEnded: the agent had ended by itself; its events and its last
	// outcome are taken over, and then its record is repaired.
	OutcomeAgentEnded SessionOutcome = "agent_ended"
	// OutcomeStale: proven to have no live instance; its record is repaired,
	// keeping resume token and worktree identity (S-002.7).
	OutcomeStale SessionOutcome = "stale"
	// OutcomeAmbiguous: several live instances, not exactly one of which is
	// the recorded one; all were stopped (S-002.10).
	OutcomeAmbiguous SessionOutcome = "ambiguous"
	// OutcomeMissingValue: a source said that a needed value is absent; the
	// instance was stopped (S-002.4).
	OutcomeMissingValue SessionOutcome = "missing_value"
	// OutcomeReadFailed: the read budget was exhausted; the instance was
	// stopped (S-002.13).
	OutcomeReadFailed SessionOutcome = "read_failed"
	// OutcomeInstanceStopping: the only instance was already ending, and has not
	// ended yet.
	OutcomeInstanceStopping SessionOutcome = "instance_stopping"
	// OutcomeUnstopped: not re-tracked, and an instance of it could not be
	// stopped; its guard stays for this backend's life (S-002.16).
	OutcomeUnstopped SessionOutcome = "unstopped"
	// OutcomeDeadline: the recovery deadline came first (S-003.7).
	OutcomeDeadline SessionOutcome = "deadline"
	// OutcomeUnknown: whether an agent lives could not be determined, so that
	// nothing was stopped and nothing repaired (S-002.12).
	OutcomeUnknown SessionOutcome = "unknown"
	// OutcomeOwnedByResume: a resume that is running owns the session (W-3).
	OutcomeOwnedByResume SessionOutcome = "owned_by_resume"
	// OutcomeOwnedByStop: a user's stop was recorded first (W-7).
	OutcomeOwnedByStop SessionOutcome = "owned_by_stop"
)

// Liveness is a three-valued answer: what could not be determined is unknown,
// never dead (S-003.6).
type Liveness string

// Liveness values.
const (
	Live    Liveness = "live"
	Dead    Liveness = "dead"
	Unknown Liveness = "unknown"
)

// LaunchRefusal says why a launch is refused at once, never queued.
type LaunchRefusal string

// Launch refusals. LaunchRefusedRecovering is retryable: recovery holds the
// session or has not taken its guards yet (S-002.8, W-8).
// LaunchRefusedUnstopped is not: an agent of this session could not be stopped
// (S-002.16). LaunchRefusedTracked: the session already has its agent.
const (
	LaunchRefusedRecovering LaunchRefusal = "recovery_in_progress"
	LaunchRefusedUnstopped  LaunchRefusal = "agent_unstopped"
	LaunchRefusedTracked    LaunchRefusal = "already_running"
)

// Retryable reports whether asking again later can succeed.
func (r LaunchRefusal) Retryable() bool { return r == LaunchRefusedRecovering }
