package calls

import (
	"time"

	"github.com/kandev/recovery/recovery"
)

// Names of the activities of Adoption. All run on the queue of one boot.
const (
	TakeGuards         = "TakeGuards"
	LocateServer       = "LocateServer"
	EvaluateServer     = "EvaluateServer"
	RotateCredential   = "RotateCredential"
	StoreCredential    = "StoreCredential"
	ConfirmRotation    = "ConfirmRotation"
	ProbeRecords       = "ProbeRecords"
	StartServer        = "StartServer"
	EndServer          = "EndServer"
	AwaitServerEnd     = "AwaitServerEnd"
	EnumerateInstances = "EnumerateInstances"
	ObserveSession     = "ObserveSession"
	PublishSession     = "PublishSession"
	ClosePass          = "ClosePass"
	ReconcileRecords   = "ReconcileRecords"
	ReportPass         = "ReportPass"
)

// Pass identifies one recovery pass. Number grows within a boot; a newer pass
// fences an older one in the execution store.
type Pass struct {
	Installation string `json:"installation"`
	BootID       string `json:"boot_id"`
	Number       int64  `json:"number"`
}

// GuardsTaken is the inventory as it was read: every live standalone record
// that is not passthrough. Read and empty is authoritative (S-002.6); a failed
// read is an error of the activity, never an empty result.
type GuardsTaken struct {
	Records []GuardedRecord `json:"records"`
}

// GuardedRecord is one record of the inventory.
type GuardedRecord struct {
	SessionID   string `json:"session_id"`
	ExecutionID string `json:"execution_id"`
	// ServerIdentity is the control server on which the execution was created,
	// empty before that.
	ServerIdentity string `json:"server_identity,omitempty"`
	// OwnedBy is set when the pass must leave the session alone: a running
	// resume or a recorded stop owns it, or this boot tracks it already.
	OwnedBy recovery.SessionOutcome `json:"owned_by,omitempty"`
}

// Located says whether a control server is recorded. A record that could not
// be read is an error of the activity (O-001.8).
type Located struct {
	Recorded       bool   `json:"recorded"`
	ServerIdentity string `json:"server_identity,omitempty"`
	// InUse: an earlier pass of this boot adopted it, and stored its replacement.
	InUse bool `json:"in_use,omitempty"`
}

// EvaluateInput names the recorded server to evaluate.
type EvaluateInput struct {
	Pass           Pass   `json:"pass"`
	ServerIdentity string `json:"server_identity"`
}

// Evaluation is the result of identity, proof and capabilities, in that order
// (O-001.3).
type Evaluation struct {
	Verdict recovery.Verdict       `json:"verdict"`
	Reason  recovery.RefusalReason `json:"reason,omitempty"`
	// Advertised is the set that the proven server advertises, and Missing what
	// of the required set is not in it (O-004.1, O-004.5).
	Advertised []string `json:"advertised,omitempty"`
	Missing    []string `json:"missing,omitempty"`
}

// EndInput names the proven server that is to end with all its agents.
type EndInput struct {
	Pass           Pass   `json:"pass"`
	ServerIdentity string `json:"server_identity"`
}

// RotateInput names the proven server whose credential is to be replaced.
type RotateInput struct {
	Pass           Pass   `json:"pass"`
	ServerIdentity string `json:"server_identity"`
}

// Rotated is a rotation that the server answered. The replacement itself stays
// in the memory of the boot until StoreCredential has written it (W-4). Refused
// is set when the server answered but did not rotate (O-002.5).
type Rotated struct {
	RotationID   uint64 `json:"rotation_id,omitempty"`
	ShuttingDown bool   `json:"shutting_down,omitempty"`
	Refused      bool   `json:"refused,omitempty"`
}

// RotationInput names the rotation to store or to confirm.
type RotationInput struct {
	Pass       Pass   `json:"pass"`
	RotationID uint64 `json:"rotation_id"`
}

// ProbeInput names the sessions whose recorded processes are to be looked for.
type ProbeInput struct {
	Pass     Pass     `json:"pass"`
	Sessions []string `json:"sessions"`
}

// Probed lists the sessions whose recorded process is proven gone. Every other
// session stays unknown (S-003.6).
type Probed struct {
	Dead []string `json:"dead,omitempty"`
}

// Closed lists the sessions that the pass had published when it was closed.
// What comes later publishes nothing (S-003.7).
type Closed struct {
	Published []string `json:"published,omitempty"`
	// StoreLost: Postgres did not answer when the pass was closed, so that the
	// sessions that were not published are unknown rather than too late.
	StoreLost bool `json:"store_lost,omitempty"`
}

// Started is an own control server that was started and recorded.
type Started struct {
	ServerIdentity string `json:"server_identity"`
}

// Enumerated is the one enumeration of a pass.
type Enumerated struct {
	Instances []LiveInstance `json:"instances"`
}

// LiveInstance is an enumerated instance, as far as a history records it.
type LiveInstance struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	Stopping  bool   `json:"stopping,omitempty"`
	Ended     bool   `json:"ended,omitempty"`
}

// SessionInput names a session and the instance that is to be re-tracked.
type SessionInput struct {
	Pass       Pass   `json:"pass"`
	SessionID  string `json:"session_id"`
	InstanceID string `json:"instance_id"`
}

// Observation says which values were there. Missing names the values that
// their sources said are absent (S-002.4); the values stay in memory. An
// unanswered read is a retryable error of the activity.
type Observation struct {
	Missing []string `json:"missing,omitempty"`
	// Gone: the instance was not there any more when it was read.
	Gone bool `json:"gone,omitempty"`
	// Ended: the agent has ended by itself.
	Ended bool `json:"ended,omitempty"`
}

// Published is a session that is tracked again.
type Published struct {
	State recovery.SessionState `json:"state"`
	// AppliedOutcome: a kept terminal outcome was applied before (S-004.2).
	AppliedOutcome bool `json:"applied_outcome,omitempty"`
	// PromptRepeated: a recorded prompt had not reached the agent.
	PromptRepeated bool `json:"prompt_repeated,omitempty"`
	// Late: the pass was closed or fenced; nothing was published (S-003.7).
	Late bool `json:"late,omitempty"`
}

// ReconcileInput carries outcomes. The first reconciliation of a pass has one
// for every record (S-003.1); a later one settles the sessions whose stop was
// in flight at the deadline.
type ReconcileInput struct {
	Pass     Pass             `json:"pass"`
	Outcomes []SessionOutcome `json:"outcomes"`
}

// ReportInput says how the pass stands: first when users are served again, and
// once more when the stops that were in flight have ended.
type ReportInput struct {
	Pass   Pass           `json:"pass"`
	Report AdoptionReport `json:"report"`
}

// SessionOutcome is the outcome of one session in one pass.
type SessionOutcome struct {
	SessionID string                  `json:"session_id"`
	Outcome   recovery.SessionOutcome `json:"outcome"`
	Instance  string                  `json:"instance,omitempty"`
	Detail    string                  `json:"detail,omitempty"`
	// StopInFlight: a stop of the session's instance has not finished; the
	// session keeps its guard and its record until then (S-003.7).
	StopInFlight bool `json:"stop_in_flight,omitempty"`
}

// Reconciled counts what reconciliation changed.
type Reconciled struct {
	Repaired int `json:"repaired"`
	Left     int `json:"left"`
}

// AdoptionInput starts the workflow Adoption.
type AdoptionInput struct {
	Pass        Pass          `json:"pass"`
	Survival    bool          `json:"survival"` // the capability is on and available
	Deadline    time.Duration `json:"deadline"`
	ReadTimeout time.Duration `json:"read_timeout"`
	ReadRetries int           `json:"read_retries"`
}

// AdoptionReport is the result of Adoption, bounded: counts, and the sessions
// that were not re-tracked (at most ReportedSessions).
type AdoptionReport struct {
	Verdict    recovery.Verdict       `json:"verdict"`
	Reason     recovery.RefusalReason `json:"reason,omitempty"`
	Adopted    bool                   `json:"adopted"`
	Enumerated bool                   `json:"enumerated"`
	RotationID uint64                 `json:"rotation_id,omitempty"`
	// Missing are the capabilities for whose lack the server was not adopted.
	Missing []string `json:"missing,omitempty"`
	// UnendedServer is a proven server whose ownership shutdown failed: it is
	// left running, and nothing of it is repaired (O-004.7).
	UnendedServer string `json:"unended_server,omitempty"`
	UnendedReason string `json:"unended_reason,omitempty"`
	// Again: the pass lost Postgres or Temporal when its deadline came; it
	// stopped nothing, and another pass is due (S-003.7).
	Again     bool                            `json:"again,omitempty"`
	Counts    map[recovery.SessionOutcome]int `json:"counts"`
	Stopped   int                             `json:"stopped"`
	Unstopped int                             `json:"unstopped"`
	Others    []SessionOutcome                `json:"others,omitempty"`
}

// ReportedSessions bounds AdoptionReport.Others.
const ReportedSessions = 200
