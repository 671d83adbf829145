package wire

import (
	"encoding/json"
	"time"
)

// EventKind says what an event is about.
type EventKind string

// Event kinds.
const (
	EventUpdate            EventKind = "update"             // payload: params of session/update
	EventPermissionRequest EventKind = "permission_request" // payload: PermissionRequested
	EventPermissionSettled EventKind = "permission_settled" // payload: PermissionSettled
	EventTurnStarted       EventKind = "turn_started"       // payload: TurnStarted
	EventTurnEnded         EventKind = "turn_ended"         // payload: TurnOutcome
	EventAgentExited       EventKind = "agent_exited"       // payload: AgentExited
	EventNoise             EventKind = "noise"              // payload: Noise; stdout that was no frame
	EventTruncated         EventKind = "truncated"          // payload: Truncated
)

// Event is one numbered event of one instance. Seq starts at 1 and has no
// holes; it follows the order of the agent's stdout (B-9).
type Event struct {
	Seq     int64           `json:"seq"`
	Kind    EventKind       `json:"kind"`
	TurnID  string          `json:"turn_id,omitempty"`
	At      time.Time       `json:"at"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// PermissionRequested is the payload of EventPermissionRequest. Params are
// those of session/request_permission.
type PermissionRequested struct {
	RequestID string          `json:"request_id"`
	Params    json.RawMessage `json:"params"`
}

// PermissionSettled is the payload of EventPermissionSettled.
type PermissionSettled struct {
	RequestID string `json:"request_id"`
	OptionID  string `json:"option_id,omitempty"`
	Cancelled bool   `json:"cancelled,omitempty"`
}

// TurnStarted is the payload of EventTurnStarted.
type TurnStarted struct {
	Key string `json:"key"`
}

// AgentExited is the payload of EventAgentExited.
type AgentExited struct {
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
}

// Noise is the payload of EventNoise: only its size is kept, never the bytes.
type Noise struct {
	Bytes int `json:"bytes"`
}

// Truncated is the payload of EventTruncated: a frame of this kind and size was
// too large to keep (B-8).
type Truncated struct {
	Kind  EventKind `json:"kind"`
	Bytes int64     `json:"bytes"`
}

// FrameType tells server frames of the event stream apart.
type FrameType string

// Types of frames from the server. A stream begins with exactly one FrameHello
// or FrameGap.
const (
	FrameHello  FrameType = "hello"
	FrameGap    FrameType = "gap"    // the cursor is outside what is kept (B-1)
	FrameEvents FrameType = "events" // consecutive events
)

// ServerFrame is one message from the server on the event stream.
// For FrameHello and FrameGap, First is the oldest event kept (Next when none
// is) and Next the number that the next event will have. After a FrameGap the
// server closes the stream with CloseGap.
type ServerFrame struct {
	Type   FrameType `json:"type"`
	First  int64     `json:"first,omitempty"`
	Next   int64     `json:"next,omitempty"`
	Events []Event   `json:"events,omitempty"`
}

// ClientFrame is one message from the client: everything up to Ack is
// committed.
type ClientFrame struct {
	Ack int64 `json:"ack"`
}

// WebSocket close codes of the event stream.
const (
	CloseNewerStream = 4001 // a newer attach won
	CloseSuperseded  = 4002 // the credential was rotated (O-002.2)
	CloseStopped     = 4003 // the instance ended and everything was delivered, or it was stopped
	CloseGap         = 4004 // cursor outside what is kept
)
