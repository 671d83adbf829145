package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kandev/recovery/agentctl/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

var epoch = time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC)

// script is an agent's end of the pipes, driven by the test.
type script struct {
	t     *testing.T
	agent *Agent
	notes *notes
	logs  *observer.ObservedLogs
	ended chan wire.TurnOutcome

	in  *bufio.Reader // what the agent is told
	out io.WriteCloser
}

// start opens an Agent on a scripted agent.
func start(t *testing.T, options ...func(*Config)) *script {
	t.Helper()
	stdinR, stdinW := io.Pipe()
	stdoutR, stdoutW := io.Pipe()
	core, logs := observer.New(zap.DebugLevel)
	s := &script{
		t: t, notes: newNotes(), logs: logs, ended: make(chan wire.TurnOutcome, 8),
		in: bufio.NewReader(stdinR), out: stdoutW,
	}
	cfg := Config{
		Stdin: stdinW, Stdout: stdoutR, Recorder: s.notes, Logger: zap.New(core),
		Clock: func() time.Time { return epoch },
		Hooks: Hooks{TurnEnded: func(o wire.TurnOutcome) { s.ended <- o }},
	}
	for _, o := range options {
		o(&cfg)
	}
	s.agent = Open(cfg)
	t.Cleanup(s.agent.Close)
	return s
}

// open starts a scripted agent with a conversation opened.
func open(t *testing.T, options ...func(*Config)) *script {
	t.Helper()
	s := start(t, options...)
	opened := make(chan error, 1)
	go func() {
		_, err := s.agent.NewSession(context.Background(), "/w")
		opened <- err
	}()
	s.reply(s.hear("session/new"), `{"sessionId":"sess"}`)
	require.NoError(t, <-opened)
	return s
}

// say writes to the agent's output as it is. It may run in any goroutine.
func (s *script) say(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.out, format, args...); err != nil {
		s.t.Errorf("the agent's output: %v", err)
	}
}

func (s *script) reply(m message, result string) {
	s.t.Helper()
	s.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
}

// update says the n-th update.
func (s *script) update(n int) {
	s.t.Helper()
	s.say(updateLine+"\n", n)
}

const askLine = `{"jsonrpc":"2.0","id":%s,"method":"session/request_permission",` +
	`"params":{"options":[{"optionId":"yes"},{"optionId":"no"}]}}`

const updateLine = `{"jsonrpc":"2.0","method":"session/update","params":{"n":%d}}`

// hear reads the next message to the agent, which must be of that method;
// "" is a response.
func (s *script) hear(method string) message {
	s.t.Helper()
	heard := make(chan message, 1)
	go func() {
		var m message
		if line, err := s.in.ReadBytes('\n'); err == nil {
			if json.Unmarshal(line, &m) != nil {
				m.Method = "invalid"
			}
		} else {
			m.Method = "end of input"
		}
		heard <- m
	}()
	select {
	case m := <-heard:
		require.Equal(s.t, method, m.Method)
		return m
	case <-time.After(patience):
		s.t.Fatalf("the agent was not told %q", method)
		return message{}
	}
}

// prompt opens a turn and returns what the agent got.
func (s *script) prompt(turnID string) message {
	s.t.Helper()
	require.NoError(s.t, s.agent.Prompt(turnID, "key-"+turnID, []json.RawMessage{[]byte(`{"type":"text","text":"hi"}`)}))
	return s.hear("session/prompt")
}

// ask raises a permission request and returns its id once it is recorded.
func (s *script) ask(rpcID string) string {
	s.t.Helper()
	before := len(s.recorded(wire.EventPermissionRequest))
	s.say(askLine+"\n", rpcID)
	s.eventually(func() bool { return len(s.recorded(wire.EventPermissionRequest)) > before })
	var p wire.PermissionRequested
	require.NoError(s.t, json.Unmarshal(s.recorded(wire.EventPermissionRequest)[before].Payload, &p))
	return p.RequestID
}

func (s *script) recorded(kind wire.EventKind) []wire.Event {
	var out []wire.Event
	for _, e := range s.notes.all() {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

func (s *script) eventually(condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, patience, time.Millisecond)
}

func (s *script) awaitKinds(kinds ...string) {
	s.t.Helper()
	s.eventually(func() bool { return len(s.notes.all()) >= len(kinds) })
	require.Equal(s.t, kinds, s.notes.kinds())
}

func (s *script) awaitEnd() wire.TurnOutcome {
	s.t.Helper()
	select {
	case o := <-s.ended:
		return o
	case <-time.After(patience):
		s.t.Fatal("the turn did not end")
		return wire.TurnOutcome{}
	}
}

func (s *script) awaitDone() {
	s.t.Helper()
	select {
	case <-s.agent.Done():
	case <-time.After(patience):
		s.t.Fatal("the agent is not done")
	}
}

// fillInput queues so much for the agent that nothing more is taken.
func (s *script) fillInput() {
	s.t.Helper()
	q := s.agent.stdin
	require.NoError(s.t, q.push([]byte("{}\n"), nil))
	s.eventually(func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.frames) == 0 // the writer is stuck with it
	})
	filler := []byte(strings.Repeat("x", 4<<10))
	for {
		if err := q.push(filler, nil); err != nil {
			require.ErrorIs(s.t, err, ErrInputStuck)
			return
		}
	}
}

// soon fails the test if f does not return.
func (s *script) soon(what string, f func()) {
	s.t.Helper()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		f()
	}()
	select {
	case <-returned:
	case <-time.After(patience):
		s.t.Fatalf("%s waits", what)
	}
}

// logged is everything in the log, messages and fields.
func (s *script) logged() string {
	var b strings.Builder
	for _, e := range s.logs.All() {
		fmt.Fprintln(&b, e.Message, e.ContextMap())
	}
	return b.String()
}
