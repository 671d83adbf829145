// Package userapi is the HTTP interface that users and operators have to a
// backend: routes, requests, responses, error codes, and a client for them.
package userapi

import (
	"encoding/json"
	"time"

	"github.com/kandev/recovery/recovery"
)

// Routes, in the standard library's ServeMux syntax. All but RouteHealth need
// "Authorization: Bearer <token>" with the token of <home>/api-token.
const (
	RouteHealth     = "/health"
	RouteStatus     = "/api/v1/status"
	RouteMetrics    = "/metrics"                                    // GET, counters in Prometheus' format (W-9)
	RouteProfile    = "/api/v1/profiles/{id}"                       // PUT, GET
	RouteSessions   = "/api/v1/sessions"                            // POST, GET
	RouteSession    = "/api/v1/sessions/{id}"                       // GET
	RoutePrompt     = "/api/v1/sessions/{id}/prompts/{key}"         // PUT, idempotent by key
	RouteCancel     = "/api/v1/sessions/{id}/cancel"                // POST
	RouteStop       = "/api/v1/sessions/{id}/stop"                  // POST
	RoutePermission = "/api/v1/sessions/{id}/permissions/{request}" // PUT
	RouteEvents     = "/api/v1/sessions/{id}/events"                // GET, server-sent events, ?after=<position>
	RouteHistory    = "/api/v1/sessions/{id}/transitions"           // GET
	// RouteSurvival takes GET and PUT, also before recovery (S-005.4, S-005.7).
	RouteSurvival = "/api/v1/features/agent-survival"
)

// Code classifies a refusal.
type Code string

// Codes, with their HTTP status.
const (
	CodeBadRequest      Code = "bad_request"      // 400
	CodeUnauthenticated Code = "unauthenticated"  // 401
	CodeForeignOrigin   Code = "foreign_origin"   // 403
	CodeNotFound        Code = "not_found"        // 404
	CodeConflict        Code = "conflict"         // 409
	CodeInvalid         Code = "invalid"          // 422
	CodeInternal        Code = "internal"         // 500
	CodeRecovering      Code = "recovering"       // 503, retryable (S-002.8, W-8)
	CodeUnstopped       Code = "agent_unstopped"  // 409, not retryable (S-002.16)
	CodeAlreadyResuming Code = "already_resuming" // 409
	CodeNoAgent         Code = "no_agent"         // 409: the session has no agent now
	CodeUnavailable     Code = "unavailable"      // 503, retryable: Postgres, Temporal or the agent did not answer

	// CodePlatformUnsupported is 422: agents cannot survive their backend on this
	// platform, so that it is not turned on (S-005.4).
	CodePlatformUnsupported Code = "platform_unsupported"
)

// Error is the body of every refusal, inside {"error": …}.
type Error struct {
	Code      Code   `json:"code"`
	Message   string `json:"message"`
	Remedy    string `json:"remedy,omitempty"`
	Retryable bool   `json:"retryable,omitempty"`
}

// Error says the message and the remedy.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Message
	}
	return e.Message + "; " + e.Remedy
}

// ErrorBody is the envelope of Error.
type ErrorBody struct {
	Error *Error `json:"error"`
}

// Profile says how an agent is started. Its environment is not for secrets.
type Profile struct {
	ID      string            `json:"id"`
	Agent   string            `json:"agent"`
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
}

// CreateSession asks for a session with an agent. Workspace is an absolute
// path of a directory; Roots default to it. TaskID joins an existing task. The
// agent of a passthrough session ends with its backend (S-005.3).
type CreateSession struct {
	ProfileID   string   `json:"profile_id"`
	TaskID      string   `json:"task_id,omitempty"`
	Title       string   `json:"title,omitempty"`
	Workspace   string   `json:"workspace"`
	Roots       []string `json:"roots,omitempty"`
	Passthrough bool     `json:"passthrough,omitempty"`
}

// Session is what a user sees. Instance is empty while no agent is tracked.
type Session struct {
	ID        string                `json:"id"`
	TaskID    string                `json:"task_id"`
	Title     string                `json:"title,omitempty"`
	TaskState recovery.TaskState    `json:"task_state"`
	State     recovery.SessionState `json:"state"`
	ProfileID string                `json:"profile_id"`
	// Passthrough: the agent ends with its backend (S-005.3).
	Passthrough bool         `json:"passthrough,omitempty"`
	Cause       string       `json:"cause,omitempty"` // why it is in this state, when that was not a user's wish
	Agent       *Agent       `json:"agent,omitempty"`
	Turn        *Turn        `json:"turn,omitempty"` // newest turn
	Pending     []Permission `json:"pending_permissions,omitempty"`
	Position    int64        `json:"position"` // newest committed event
	CreatedAt   time.Time    `json:"created_at"`
	UpdatedAt   time.Time    `json:"updated_at"`
}

// Agent is the supervised process of a session.
type Agent struct {
	InstanceID string `json:"instance_id"`
	PID        int    `json:"pid"`
	Generation int64  `json:"generation"`
}

// Turn is one prompt and how it ended.
type Turn struct {
	Key        string             `json:"key"`
	TurnID     string             `json:"turn_id,omitempty"`
	State      recovery.TurnState `json:"state"`
	StopReason string             `json:"stop_reason,omitempty"`
	Error      string             `json:"error,omitempty"`
}

// Permission is a request of the agent that waits for a user's answer.
type Permission struct {
	RequestID string          `json:"request_id"`
	Params    json.RawMessage `json:"params"`
}

// Prompt opens a turn with text.
type Prompt struct {
	Text string `json:"text"`
}

// PermissionAnswer settles a permission request: an option, or cancelled.
type PermissionAnswer struct {
	OptionID  string `json:"option_id,omitempty"`
	Cancelled bool   `json:"cancelled,omitempty"`
}

// Event is one committed event. Position counts per session from 1, without
// holes; it is the id of the server-sent event.
type Event struct {
	Position   int64           `json:"position"`
	InstanceID string          `json:"instance_id"`
	Seq        int64           `json:"seq"`
	Kind       string          `json:"kind"`
	TurnID     string          `json:"turn_id,omitempty"`
	At         time.Time       `json:"at"`
	Payload    json.RawMessage `json:"payload,omitempty"`
}

// Transition is one change of a session's state.
type Transition struct {
	From   recovery.SessionState `json:"from"`
	To     recovery.SessionState `json:"to"`
	Cause  string                `json:"cause"`
	BootID string                `json:"boot_id"`
	At     time.Time             `json:"at"`
}

// Phase says how far a backend has come since its start.
type Phase string

// Phases, in order.
const (
	PhaseWaitingPostgres Phase = "waiting_for_postgres"
	PhaseWaitingTemporal Phase = "waiting_for_temporal"
	PhaseRecovering      Phase = "recovering"
	PhaseServing         Phase = "serving"
)

// Status is the status page.
type Status struct {
	BootID       string        `json:"boot_id"`
	Installation string        `json:"installation,omitempty"`
	Phase        Phase         `json:"phase"`
	WaitingFor   string        `json:"waiting_for,omitempty"` // what is not reachable, in words
	Survival     Survival      `json:"agent_survival"`
	Control      *Control      `json:"control_server,omitempty"`
	KeepingAlive *KeepingAlive `json:"keeping_alive,omitempty"`
	Recovery     *RecoveryPass `json:"recovery,omitempty"`
	StartedAt    time.Time     `json:"started_at"`
}

// Survival is the capability's state; one that is unavailable has a
// machine-readable reason (S-005.4).
type Survival struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// States of Survival.
const (
	SurvivalOn          = "on"
	SurvivalOff         = "off"
	SurvivalUnavailable = "unavailable"
)

// SurvivalSetting is features.agentSurvival. A change acts at the next start of a
// backend and alters nothing of a running one (S-005.7).
type SurvivalSetting struct {
	InForce   Survival `json:"in_force"`
	NextStart Survival `json:"next_start"`
	// OverriddenBy is the environment variable that decides, whatever is in the
	// settings file, if the next backend gets it too.
	OverriddenBy string `json:"overridden_by,omitempty"`
}

// SetSurvival turns the capability on or off.
type SetSurvival struct {
	On *bool `json:"on"`
}

// Control describes the control server in use.
type Control struct {
	ServerIdentity string     `json:"server_identity"`
	Adopted        bool       `json:"adopted"`
	LastRenewal    *time.Time `json:"last_renewal,omitempty"`
}

// KeepingAlive says that a control server from before is kept from ending itself
// while this backend cannot recover yet (B-2). It is absent once a control server
// is in use.
type KeepingAlive struct {
	ServerIdentity string    `json:"server_identity"`
	Since          time.Time `json:"since"`
	LastRenewal    time.Time `json:"last_renewal"`
	// Means is "claim", or "rotation_replay" where only a superseded credential
	// is held.
	Means string `json:"means"`
}

// RecoveryPass describes the newest recovery pass of this boot.
type RecoveryPass struct {
	WorkflowID string                          `json:"workflow_id"`
	RunID      string                          `json:"run_id"`
	Verdict    recovery.Verdict                `json:"verdict,omitempty"`
	Reason     recovery.RefusalReason          `json:"reason,omitempty"`
	Counts     map[recovery.SessionOutcome]int `json:"counts,omitempty"`
	// Others are sessions that were not re-tracked, at most 200 of them.
	Others    []SessionOutcome `json:"others,omitempty"`
	Stopped   int              `json:"stopped,omitempty"`
	Unstopped int              `json:"unstopped,omitempty"`
	// MissingCapabilities made a recorded server incompatible (O-004.1).
	MissingCapabilities []string `json:"missing_capabilities,omitempty"`
	// UnendedServer is a server of ours that could not be ended (O-004.7).
	UnendedServer string `json:"unended_server,omitempty"`
	// FinishedAfterMS is the time from process start to the end of the pass.
	FinishedAfterMS int64 `json:"finished_after_ms,omitempty"`
}

// SessionOutcome says what the pass did with a session that it did not re-track.
type SessionOutcome struct {
	SessionID  string                  `json:"session_id"`
	Outcome    recovery.SessionOutcome `json:"outcome"`
	InstanceID string                  `json:"instance_id,omitempty"`
	Detail     string                  `json:"detail,omitempty"`
}
