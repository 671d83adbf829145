package calls

// Types of application errors that activities return. Workflows decide by
// type, never by message.
const (
	// FailureUnanswered: a peer did not answer in time or could not be
	// reached; retryable, and never taken for an absence.
	FailureUnanswered = "unanswered"
	// FailureStoreLost: Postgres did not answer; retryable. It says nothing of
	// the control server or its agents.
	FailureStoreLost = "store_lost"
	// FailureSuperseded: a newer credential drives; not retryable (O-002.3).
	FailureSuperseded = "credential_superseded"
	// FailureFenced: the pass was closed or replaced by a newer one.
	FailureFenced = "pass_fenced"
	// FailureLaunchRefusedRetryable and FailureLaunchRefused: see
	// recovery.LaunchRefusal.
	FailureLaunchRefusedRetryable = "launch_refused_retryable"
	FailureLaunchRefused          = "launch_refused"
	// FailureConflict: the session is not in a state from which this is allowed.
	FailureConflict = "state_conflict"
	// FailureAgentStart: the agent's process ended or could not be started.
	FailureAgentStart = "agent_start"
	// FailureStop: a process of the instance's tree survived a stop.
	FailureStop = "stop_failed"
)
