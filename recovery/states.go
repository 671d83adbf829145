package recovery

// SessionState is the durable state of a session, as users see it.
type SessionState string

// Session states. A session that has an agent is in StateRunning while a turn
// is open and in StateWaitingForInput between turns. StateInterrupted is a
// session whose agent is proven gone and that can be resumed.
const (
	StateCreated         SessionState = "CREATED"
	StateStarting        SessionState = "STARTING"
	StateRunning         SessionState = "RUNNING"
	StateWaitingForInput SessionState = "WAITING_FOR_INPUT"
	StateInterrupted     SessionState = "INTERRUPTED"
	StateCompleted       SessionState = "COMPLETED"
	StateFailed          SessionState = "FAILED"
	StateCancelled       SessionState = "CANCELLED"
)

// Terminal reports whether a credential broker refuses a session in this
// state.
func (s SessionState) Terminal() bool {
	return s == StateCompleted || s == StateFailed || s == StateCancelled
}

// HasAgent reports whether a session in this state is expected to have a live
// agent, so that its inventory record counts as live.
func (s SessionState) HasAgent() bool {
	return s == StateStarting || s == StateRunning || s == StateWaitingForInput
}

// TaskState is the bucket in which a task is shown.
type TaskState string

// Task states. TaskReview is the "turn finished" bucket; TaskInterrupted marks
// a task whose agent was lost in the middle of its work (S-003.2).
const (
	TaskBacklog     TaskState = "BACKLOG"
	TaskInProgress  TaskState = "IN_PROGRESS"
	TaskReview      TaskState = "REVIEW"
	TaskInterrupted TaskState = "INTERRUPTED"
	TaskDone        TaskState = "DONE"
)

// TurnState is the durable state of one turn.
type TurnState string

// Turn states. TurnRecorded is a prompt that was written down and may not have
// reached the agent; the others follow the agent.
const (
	TurnRecorded  TurnState = "RECORDED"
	TurnOpen      TurnState = "OPEN"
	TurnEnded     TurnState = "ENDED"
	TurnFailed    TurnState = "FAILED"
	TurnCancelled TurnState = "CANCELLED"
	TurnAbandoned TurnState = "ABANDONED"
)

// Open reports whether the turn still waits for its terminal outcome.
func (t TurnState) Open() bool { return t == TurnRecorded || t == TurnOpen }

// TurnStateOf maps how an agent ended a turn to the turn's durable state:
// an error ends it as failed, the stop reason "cancelled" as cancelled, every
// other stop reason as ended.
func TurnStateOf(stopReason string, failed bool) TurnState {
	switch {
	case failed:
		return TurnFailed
	case stopReason == "cancelled":
		return TurnCancelled
	default:
		return TurnEnded
	}
}
