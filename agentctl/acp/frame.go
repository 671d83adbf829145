package acp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"
)

// message is a JSON-RPC message from the agent.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// parse reads one message from the agent; false if it is none. The message
// shares no memory with the line. One pass says whether the line is JSON, and
// another, cheaper one finds its members: agents say so much that a decoder,
// which reads each value twice and once more to copy it, is most of the work.
func parse(line []byte) (message, bool) {
	if !json.Valid(line) {
		return message{}, false
	}
	var m message
	wellTyped := true
	object := members(line, func(name string, value []byte) {
		wellTyped = m.take(name, value) && wellTyped
	})
	if !object || !wellTyped {
		return message{}, false
	}
	if m.Method == "" {
		return m, m.ID != nil && (m.Version != "" || m.Result != nil || m.Error != nil)
	}
	return m, !isEcho(m.Method)
}

// take keeps a member that a message has, and reports whether it is of its type.
// An absent member and null are the same, except for a result.
func (m *message) take(name string, value []byte) bool {
	switch name {
	case "jsonrpc":
		return takeText(&m.Version, value)
	case "method":
		return takeText(&m.Method, value)
	case "id":
		m.ID = unlessNull(value)
	case "params":
		m.Params = unlessNull(value)
	case "error":
		m.Error = unlessNull(value)
	case "result":
		m.Result = bytes.Clone(value)
	}
	return true
}

func takeText(to *string, value []byte) bool {
	if isNull(value) {
		return true
	}
	if value[0] != '"' {
		return false
	}
	*to = text(value)
	return true
}

func unlessNull(value []byte) json.RawMessage {
	if isNull(value) {
		return nil
	}
	return bytes.Clone(value)
}

func isNull(value []byte) bool { return string(value) == "null" }

// isEcho recognizes our own requests, which some agents print when they log
// what they receive. Refused as the agent's, they would answer its request of
// the same id.
func isEcho(method string) bool {
	switch method {
	case sdk.AgentMethodInitialize, sdk.AgentMethodSessionNew, sdk.AgentMethodSessionLoad,
		sdk.AgentMethodSessionResume, sdk.AgentMethodSessionPrompt, sdk.AgentMethodSessionCancel:
		return true
	}
	return false
}

// received is a message with the bytes that it came in.
type received struct {
	message
	raw []byte
}

// maxCandidates bounds the work on a noisy line.
const maxCandidates = 256

// split returns the messages of a line and how many of its bytes are noise
// before, between and after them (B-9).
func split(line []byte) (messages []received, noise int) {
	if m, ok := parse(line); ok {
		return []received{{m, line}}, 0
	}
	rest := line
	for range maxCandidates {
		start := nextCandidate(rest)
		if start < 0 {
			break
		}
		value, ok := firstValue(rest[start:])
		if !ok {
			noise += start + 1
			rest = rest[start+1:]
			continue
		}
		noise += start
		// An object that is no message is passed over whole: what it contains
		// was quoted, not sent.
		if m, ok := parse(value); ok && m.Version != "" {
			messages = append(messages, received{m, value})
		} else {
			noise += len(value)
		}
		rest = rest[start+len(value):]
	}
	return messages, noise + len(rest)
}

// nextCandidate finds where an object with a version member may begin.
func nextCandidate(b []byte) int {
	end := bytes.LastIndex(b, []byte(`"jsonrpc"`))
	for i := 0; i < end; i++ {
		if b[i] == '{' && bytes.HasPrefix(bytes.TrimLeft(b[i+1:], " \t"), []byte{'"'}) {
			return i
		}
	}
	return -1
}

// firstValue returns the JSON value at the beginning of b.
func firstValue(b []byte) (json.RawMessage, bool) {
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(b)).Decode(&value)
	return value, err == nil
}

// clean makes a JSON value valid UTF-8; other bytes occur in strings only.
// Escapes stay as they are, also those that a database may refuse (NUL, lone
// surrogates).
func clean(value json.RawMessage) json.RawMessage {
	if utf8.Valid(value) {
		return value
	}
	return bytes.ToValidUTF8(value, []byte("\uFFFD"))
}

// frame is a JSON-RPC message to the agent, or from it to the SDK.
type frame struct {
	Version version           `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id,omitempty"`
	Method  string            `json:"method,omitempty"`
	Params  any               `json:"params,omitempty"`
	Result  any               `json:"result,omitempty"`
	Error   *sdk.RequestError `json:"error,omitempty"`
}

// version marshals as the one protocol version there is.
type version struct{}

func (version) MarshalText() ([]byte, error) { return []byte("2.0"), nil }

// promptParams are those of session/prompt, with the blocks as they came.
type promptParams struct {
	SessionID string            `json:"sessionId"`
	Prompt    []json.RawMessage `json:"prompt"`
}

// encode returns a frame as a line. It fails only for raw JSON that is invalid.
func encode(f frame) ([]byte, error) {
	raw, err := json.Marshal(f)
	return append(raw, '\n'), err
}
