package acp

import (
	"errors"
	"fmt"

	"github.com/kandev/recovery/agentctl/wire"
)

// Values of wire.TurnOutcome.Error. An agent's own error becomes
// ErrorAgentPrefix followed by its JSON-RPC code; its text, which may hold paths
// and addresses, goes nowhere.
const (
	ErrorAgentExited = "agent_exited"
	ErrorOversized   = "oversized_response"
	ErrorMalformed   = "malformed_response"
	ErrorAgentPrefix = "agent_error:"
)

// Refusals of prompts, cancellations and answers to permission requests.
var (
	ErrTurnOpen          error = &wire.Error{Code: wire.CodeTurnOpen, Message: "another turn is open"}
	ErrNoTurn            error = &wire.Error{Code: wire.CodeNoTurn, Message: "no turn is open"}
	ErrNotReady          error = &wire.Error{Code: wire.CodeNotReady, Message: "the agent has no open conversation"}
	ErrInputStuck        error = &wire.Error{Code: wire.CodeNotReady, Message: "the agent does not read its input"}
	ErrBadPrompt         error = &wire.Error{Code: wire.CodeBadRequest, Message: "a prompt needs content blocks of valid JSON"}
	ErrBadAnswer         error = &wire.Error{Code: wire.CodeBadRequest, Message: "answer with one of the offered options, or cancel"}
	ErrUnknownPermission error = &wire.Error{Code: wire.CodeNotFound, Message: "no such permission request"}
	ErrPermissionSettled error = &wire.Error{Code: wire.CodeSettled, Message: "the permission request is settled"}
)

// Failures of the calls that open a conversation.
var (
	// ErrExited: the agent's output ended before it answered.
	ErrExited = errors.New("the agent ended before it answered")
	// ErrProtocol: the agent speaks another protocol version, or answered
	// without what the protocol demands.
	ErrProtocol = errors.New("the agent does not keep to the protocol")
)

// CallError is the agent's refusal of a call.
type CallError struct {
	Method string
	Code   int // JSON-RPC
	// Message is the agent's text. It may name paths and addresses: it must be
	// sanitized before it goes anywhere.
	Message string
}

// Error leaves the agent's text out.
func (e *CallError) Error() string {
	return fmt.Sprintf("%s: the agent answered with error %d", e.Method, e.Code)
}
