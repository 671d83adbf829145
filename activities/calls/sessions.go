package calls

import (
	"time"

	"github.com/kandev/recovery/recovery"
)

// Names of the activities of StopWithRetry, GuardedResume and Launch.
const (
	StopInstance   = "StopInstance"
	FinishStop     = "FinishStop"
	BeginStart     = "BeginStart"
	CreateInstance = "CreateInstance"
	AwaitReady     = "AwaitReady"
	PublishStarted = "PublishStarted"
	AbandonStart   = "AbandonStart"
)

// StopInput starts the workflow StopWithRetry.
type StopInput struct {
	InstanceID string              `json:"instance_id"`
	SessionID  string              `json:"session_id,omitempty"`
	Reason     recovery.StopReason `json:"reason"`
	// BootID is set for recovery's stops, which act in their boot only (W-7).
	BootID      string        `json:"boot_id,omitempty"`
	ReadTimeout time.Duration `json:"read_timeout"`
	ReadRetries int           `json:"read_retries"`
}

// StopResult is the result of StopWithRetry. Absent: there was no such
// instance, which is success. Stopped is false when the budget was exhausted.
type StopResult struct {
	Stopped bool   `json:"stopped"`
	Absent  bool   `json:"absent,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// StopInstanceInput is one attempt of a stop. Grace is how long the agent may
// end by itself before its tree is killed.
type StopInstanceInput struct {
	InstanceID string              `json:"instance_id"`
	SessionID  string              `json:"session_id,omitempty"`
	Reason     recovery.StopReason `json:"reason,omitempty"`
	BootID     string              `json:"boot_id,omitempty"`
	Grace      time.Duration       `json:"grace"`
}

// FinishStopInput settles a user's stop in the inventory.
type FinishStopInput struct {
	SessionID  string `json:"session_id"`
	InstanceID string `json:"instance_id"`
	Stopped    bool   `json:"stopped"`
	Detail     string `json:"detail,omitempty"`
}

// ResumeMode says how a session is to get its agent.
type ResumeMode string

// Resume modes; one code path serves all.
const (
	ResumeNew ResumeMode = "new"
)

// ResumeInput starts the workflow GuardedResume.
type ResumeInput struct {
	SessionID      string        `json:"session_id"`
	Mode           ResumeMode    `json:"mode"`
	LaunchDeadline time.Duration `json:"launch_deadline"`
	ReadTimeout    time.Duration `json:"read_timeout"`
	ReadRetries    int           `json:"read_retries"`
}

// StartIntent is the launch that was written down before anything is spawned:
// the execution id is the instance's id, so that a create is idempotent.
type StartIntent struct {
	SessionID   string                `json:"session_id"`
	ExecutionID string                `json:"execution_id"`
	Generation  int64                 `json:"generation"`
	Prior       recovery.SessionState `json:"prior"`
}

// AbandonInput undoes a start that failed, timed out or was cancelled.
type AbandonInput struct {
	Intent StartIntent `json:"intent"`
	Cause  string      `json:"cause"` // bounded, no path
}

// ResumeResult is the result of GuardedResume.
type ResumeResult struct {
	State       recovery.SessionState `json:"state"`
	ExecutionID string                `json:"execution_id,omitempty"`
	Cause       string                `json:"cause,omitempty"` // set when the start failed
}
