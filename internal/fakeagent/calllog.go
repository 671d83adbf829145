package fakeagent

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Methods of the call log that are not ACP calls.
const (
	MethodStart      = "start"      // a process of the agent began
	MethodGrandchild = "grandchild" // the script spawned a process; PID is its id
	MethodComplaint  = "complaint"  // 64 KiB went to standard error
)

// Call is one line of the call log: one message that an agent received, or one
// of the methods above.
type Call struct {
	At        time.Time `json:"at"`
	PID       int       `json:"pid"`
	Method    string    `json:"method"`
	SessionID string    `json:"session_id,omitempty"`
	Cwd       string    `json:"cwd,omitempty"`
	Digest    string    `json:"digest,omitempty"` // SHA-256 of the parameters as received
}

// callLog appends calls to a file. Several processes may share the file: every
// line is one write in append mode. A nil callLog records nothing.
type callLog struct {
	mu   sync.Mutex
	file *os.File
}

// openCallLog opens the file for appending, creating it when absent.
func openCallLog(path string) (*callLog, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open call log: %w", err)
	}
	return &callLog{file: file}, nil
}

// append stamps the call with the time, and with the process's id if it has
// none, and writes it.
func (l *callLog) append(call Call) error {
	if l == nil {
		return nil
	}
	call.At = time.Now()
	if call.PID == 0 {
		call.PID = os.Getpid()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return appendLine(l.file, call)
}

// close closes the file.
func (l *callLog) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// ReadCalls reads a call log, oldest first. A log that does not exist yet has
// no calls; a last line that is still being written is left out.
func ReadCalls(path string) ([]Call, error) {
	return readLines[Call](path)
}

// callOf reads what the call log keeps of one received frame. Responses have
// no method and are no calls.
func callOf(line []byte) (Call, bool) {
	var frame struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(line, &frame); err != nil || frame.Method == "" {
		return Call{}, false
	}
	call := Call{Method: frame.Method}
	if len(frame.Params) > 0 {
		sum := sha256.Sum256(frame.Params)
		call.Digest = hex.EncodeToString(sum[:])
		var named struct {
			SessionID string `json:"sessionId"`
			Cwd       string `json:"cwd"`
		}
		if json.Unmarshal(frame.Params, &named) == nil {
			call.SessionID, call.Cwd = named.SessionID, named.Cwd
		}
	}
	return call, true
}

func appendLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

func readLines[T any](path string) ([]T, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	defer file.Close()
	var all []T
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read record: %w", err)
		}
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("line %d of the record is no JSON: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
}
