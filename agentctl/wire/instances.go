package wire

import (
	"encoding/json"
	"time"
)

// Mode says how the agent's conversation is opened.
type Mode string

// Modes of opening a conversation.
const (
	ModeNew    Mode = "new"
	ModeLoad   Mode = "load"
	ModeResume Mode = "resume"
)

// CreateRequest asks for one supervised agent. It is idempotent by the
// instance id of the route: the same request again answers the same instance,
// another request under the same id is refused with CodeInstanceExists.
type CreateRequest struct {
	SessionID  string            `json:"session_id"`
	TaskID     string            `json:"task_id"`
	Generation int64             `json:"generation"`
	Command    []string          `json:"command"`
	Env        map[string]string `json:"env,omitempty"`
	// Roots are the absolute workspace source roots; the first is the agent's
	// working directory.
	Roots             []string `json:"roots"`
	Mode              Mode     `json:"mode"`
	ProviderSessionID string   `json:"provider_session_id,omitempty"`
	RunID             string   `json:"run_id,omitempty"`
}

// InstanceState is where an instance is in its life.
type InstanceState string

// Instance states.
const (
	InstanceStarting InstanceState = "starting"
	InstanceReady    InstanceState = "ready"
	InstanceFailed   InstanceState = "failed" // never became ready
	InstanceExited   InstanceState = "exited" // was ready, and its agent ended
	InstanceStopping InstanceState = "stopping"
)

// Instance is one supervised agent, without its environment and paths.
type Instance struct {
	ID                string        `json:"id"`
	SessionID         string        `json:"session_id"`
	TaskID            string        `json:"task_id"`
	Generation        int64         `json:"generation"`
	State             InstanceState `json:"state"`
	ProviderSessionID string        `json:"provider_session_id,omitempty"`
	PID               int           `json:"pid,omitempty"`
	ProcessStart      string        `json:"process_start,omitempty"` // opaque start identity of PID
	OpenTurnID        string        `json:"open_turn_id,omitempty"`
	OpenTurnKey       string        `json:"open_turn_key,omitempty"`
	LastSeq           int64         `json:"last_seq"` // newest event number
	CreatedAt         time.Time     `json:"created_at"`
}

// Alive reports whether the instance's agent still runs.
func (i Instance) Alive() bool {
	return i.State == InstanceStarting || i.State == InstanceReady || i.State == InstanceStopping
}

// InstanceList is the answer of an enumeration (S-002.1).
type InstanceList struct {
	Instances []Instance `json:"instances"`
}

// InstanceDetail adds what re-tracking reads from the instance itself
// (S-002.14). Nil roots or run environment mean that the server does not know;
// empty ones are legitimately empty.
type InstanceDetail struct {
	Instance
	Roots  []string          `json:"roots"`
	RunEnv map[string]string `json:"run_env"`
}

// StopRequest is the body of DELETE on an instance. GraceMS is how long the
// agent may take to end by itself before its whole tree is killed.
type StopRequest struct {
	GraceMS int64 `json:"grace_ms"`
}

// StopResponse answers a stop. Absent: there was no such instance.
type StopResponse struct {
	Absent bool `json:"absent,omitempty"`
}

// PromptRequest opens a turn; it is idempotent by the key of the route.
type PromptRequest struct {
	// Blocks are ACP content blocks, passed on as they are.
	Blocks []json.RawMessage `json:"blocks"`
}

// Turn answers a prompt.
type Turn struct {
	TurnID string `json:"turn_id"`
	Open   bool   `json:"open"`
}

// PermissionAnswer settles a permission request. Exactly one of OptionID and
// Cancelled is set.
type PermissionAnswer struct {
	OptionID  string `json:"option_id,omitempty"`
	Cancelled bool   `json:"cancelled,omitempty"`
}

// TurnOutcome is how a turn ended. Error is set when it failed.
type TurnOutcome struct {
	TurnID     string    `json:"turn_id"`
	Key        string    `json:"key"`
	StopReason string    `json:"stop_reason,omitempty"`
	Error      string    `json:"error,omitempty"`
	EndedAt    time.Time `json:"ended_at"`
}

// KeptOutcome answers a read of the last terminal outcome; nil means none is
// kept. Reading does not discard (S-004.6).
type KeptOutcome struct {
	Outcome *TurnOutcome `json:"outcome"`
}

// AckOutcomeRequest discards the kept outcome of that turn. Unknown ids change
// nothing.
type AckOutcomeRequest struct {
	TurnID string `json:"turn_id"`
}

// StartupPhase says how far a start has come.
type StartupPhase string

// Startup phases, in order; PhaseFailed can follow any of them.
const (
	PhaseSpawned      StartupPhase = "spawned"
	PhaseInitializing StartupPhase = "initializing"
	PhaseOpening      StartupPhase = "opening_session"
	PhaseReady        StartupPhase = "ready"
	PhaseFailed       StartupPhase = "failed"
)

// Startup reports how a start is going. Cause and Evidence are bounded and
// contain no path, address or raw stderr.
type Startup struct {
	Generation  int64        `json:"generation"`
	Phase       StartupPhase `json:"phase"`
	FailedIn    StartupPhase `json:"failed_in,omitempty"`
	ExitCode    *int         `json:"exit_code,omitempty"`
	Cause       string       `json:"cause,omitempty"`
	LoadSession bool         `json:"load_session"` // what the agent advertises
}
