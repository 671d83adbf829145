package fakeagent

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Role says what an entry of a history records.
type Role string

// Roles. RoleAgent is one update, RoleAsk one permission request, RoleEnd one
// answered prompt: these are what the agent puts on its standard output.
const (
	RoleOpened Role = "opened"
	RoleUser   Role = "user"
	RoleAgent  Role = "agent"
	RoleAsk    Role = "ask"
	RoleEnd    Role = "end"
)

// Entry is one line of a session's history. N numbers the updates of a session
// from 1 over all of its turns and processes.
type Entry struct {
	Role       Role   `json:"role"`
	Cwd        string `json:"cwd,omitempty"`
	Turn       int    `json:"turn,omitempty"`
	N          int    `json:"n,omitempty"`
	Text       string `json:"text,omitempty"`
	Size       int    `json:"size,omitempty"` // bytes that an update was padded to
	StopReason string `json:"stop_reason,omitempty"`
	Error      string `json:"error,omitempty"`
}

// Produced counts what a session put on the agent's standard output.
type Produced struct{ Updates, Asks, Ends int }

// Total is the number of events that these become.
func (p Produced) Total() int { return p.Updates + p.Asks + p.Ends }

// History is one session as the agent itself recorded it.
type History struct {
	SessionID string
	Entries   []Entry
}

// Cwd is the directory that the session was opened in.
func (h History) Cwd() string {
	if len(h.Entries) == 0 {
		return ""
	}
	return h.Entries[0].Cwd
}

// Produced counts the entries that went to standard output.
func (h History) Produced() Produced {
	var p Produced
	for _, e := range h.Entries {
		switch e.Role {
		case RoleAgent:
			p.Updates++
		case RoleAsk:
			p.Asks++
		case RoleEnd:
			p.Ends++
		case RoleOpened, RoleUser:
		}
	}
	return p
}

const historySuffix = ".jsonl"

// ReadHistories reads every session in a state directory, ordered by id.
func ReadHistories(state string) ([]History, error) {
	files, err := filepath.Glob(filepath.Join(state, "*"+historySuffix))
	if err != nil {
		return nil, fmt.Errorf("list histories: %w", err)
	}
	all := make([]History, 0, len(files))
	for _, file := range files {
		entries, err := readLines[Entry](file)
		if err != nil {
			return nil, err
		}
		id := strings.TrimSuffix(filepath.Base(file), historySuffix)
		all = append(all, History{SessionID: id, Entries: entries})
	}
	return all, nil
}

// errUnknownSession: the state directory holds no such session.
var errUnknownSession = errors.New("no such session")

// session is one conversation of this process. An entry is written before what
// it records is sent, so that a number is never used twice.
type session struct {
	id   string
	file *os.File

	mu          sync.Mutex
	turn, count int
}

func newSession(state, cwd string) (*session, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("draw a session id: %w", err)
	}
	s := &session{id: "fake-" + hex.EncodeToString(random[:])}
	if err := s.open(state, os.O_CREATE|os.O_EXCL); err != nil {
		return nil, err
	}
	return s, s.record(Entry{Role: RoleOpened, Cwd: cwd})
}

// loadSession opens a stored session and returns its entries for a replay.
func loadSession(state, id string) (*session, []Entry, error) {
	if id != filepath.Base(id) {
		return nil, nil, errUnknownSession
	}
	entries, err := readLines[Entry](filepath.Join(state, id+historySuffix))
	if err != nil {
		return nil, nil, err
	}
	if len(entries) == 0 {
		return nil, nil, errUnknownSession
	}
	s := &session{id: id}
	for _, e := range entries {
		s.turn, s.count = max(s.turn, e.Turn), max(s.count, e.N)
	}
	return s, entries, s.open(state, 0)
}

func (s *session) open(state string, flags int) error {
	path := filepath.Join(state, s.id+historySuffix)
	file, err := os.OpenFile(path, flags|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	s.file = file
	return nil
}

// number takes n numbers of updates that are not recorded, and returns the first.
func (s *session) number(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count += n
	return s.count - n + 1
}

func (s *session) record(e Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return appendLine(s.file, e)
}

// beginTurn numbers a prompt and records it.
func (s *session) beginTurn(text string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	return s.turn, appendLine(s.file, Entry{Role: RoleUser, Turn: s.turn, Text: text})
}

// nextUpdate numbers an update and records it.
func (s *session) nextUpdate(turn int, text string, size int) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	e := Entry{Role: RoleAgent, Turn: turn, N: s.count, Text: text, Size: size}
	return e, appendLine(s.file, e)
}
