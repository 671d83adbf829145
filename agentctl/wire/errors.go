package wire

import "fmt"

// Code names a class of refusal. Clients decide by code, never by message.
type Code string

// Error codes, with the HTTP status that carries each.
const (
	CodeBadRequest       Code = "bad_request"           // 400
	CodeUnauthenticated  Code = "unauthenticated"       // 401: no or unknown credential
	CodeSuperseded       Code = "credential_superseded" // 401: a newer credential drives (O-002.3)
	CodeForeignOrigin    Code = "foreign_origin"        // 403 (B-11)
	CodeNotFound         Code = "not_found"             // 404
	CodeInstanceExists   Code = "instance_exists"       // 409: same id, other request
	CodeTurnOpen         Code = "turn_open"             // 409: another turn is open
	CodeNoTurn           Code = "no_turn"               // 409: nothing to cancel
	CodeNotReady         Code = "not_ready"             // 409: the agent has not started or has ended
	CodeSettled          Code = "permission_settled"    // 409: answered or cancelled before
	CodeUnknownRotation  Code = "unknown_rotation"      // 409
	CodeStopped          Code = "stopped"               // 410: this id was stopped (tombstone)
	CodeTooLarge         Code = "too_large"             // 413
	CodeInvalidCommand   Code = "invalid_command"       // 422: the agent's command cannot be started
	CodeInvalidWorkspace Code = "invalid_workspace"     // 422: the workspace is not a directory
	CodeStopFailed       Code = "stop_failed"           // 500: a process of the tree survived
	CodeInternal         Code = "internal"              // 500
	CodeShuttingDown     Code = "shutting_down"         // 503: one-way (O-003.9)
)

// Error is the body of every refusal, inside {"error": …}. It never contains
// a path of the host or a secret.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Error says the code and the message.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Is makes errors.Is compare by code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// ErrorBody is the envelope of Error.
type ErrorBody struct {
	Error *Error `json:"error"`
}

// Status returns the HTTP status that carries the code.
func (c Code) Status() int {
	switch c {
	case CodeBadRequest:
		return 400
	case CodeUnauthenticated, CodeSuperseded:
		return 401
	case CodeForeignOrigin, CodeOutsideWorkspace, CodeFileDenied:
		return 403
	case CodeNotFound, CodeNoSuchFile:
		return 404
	case CodeInstanceExists, CodeTurnOpen, CodeNoTurn, CodeNotReady, CodeSettled, CodeUnknownRotation, CodeFileChanged:
		return 409
	case CodeStopped:
		return 410
	case CodeTooLarge:
		return 413
	case CodeInvalidCommand, CodeInvalidWorkspace, CodeWrongKind, CodeNoRepository:
		return 422
	case CodeShuttingDown:
		return 503
	default:
		return 500
	}
}
