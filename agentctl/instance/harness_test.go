//go:build unix

package instance

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/agentctl/wire"
)

const patience = 15 * time.Second

// newTestSupervisor is stopped, with everything in it, at the test's end.
func newTestSupervisor(t *testing.T, adjust func(*Config)) *Supervisor {
	t.Helper()
	config := Config{
		EventLimit: 100, Clock: time.Now,
		Logger:  zaptest.NewLogger(t),
		BaseEnv: []string{"PATH=" + os.Getenv("PATH"), "KANDEV_TEST_LEAK=1", "LANG=C.UTF-8"},
	}
	if adjust != nil {
		adjust(&config)
	}
	s := NewSupervisor(config)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, s.StopAll(ctx, 0))
		s.Close()
	})
	return s
}

// agent is what a test knows of the agent behind one create request.
type agent struct {
	t       *testing.T
	s       *Supervisor
	id      string
	request wire.CreateRequest
	dir     string
}

func describe(t *testing.T, s *Supervisor, id string, behaviour ...string) *agent {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	return &agent{t: t, s: s, id: id, dir: dir, request: wire.CreateRequest{
		SessionID: "s-" + id, TaskID: "task", Generation: 2, RunID: "run-" + id,
		Command: []string{exe, agentArgument}, Roots: []string{t.TempDir(), dir}, Mode: wire.ModeNew,
		Env: map[string]string{
			envDir: dir, envBehaviour: strings.Join(behaviour, " "), "GORACE": "atexit_sleep_ms=0",
		},
	}}
}

// started creates the agent and waits until it is ready.
func started(t *testing.T, s *Supervisor, id string, behaviour ...string) *agent {
	t.Helper()
	a := describe(t, s, id, behaviour...)
	a.create()
	a.await(wire.InstanceReady)
	return a
}

func (a *agent) create() wire.Instance {
	a.t.Helper()
	v, err := a.s.Create(a.id, a.request)
	require.NoError(a.t, err)
	return v
}

func (a *agent) view() wire.InstanceDetail {
	a.t.Helper()
	v, err := a.s.Get(a.id)
	require.NoError(a.t, err)
	return v
}

func (a *agent) await(state wire.InstanceState) wire.InstanceDetail {
	a.t.Helper()
	eventually(a.t, func() bool { return a.view().State == state })
	return a.view()
}

// asked waits for the agent's permission request, the newest of its events.
func (a *agent) asked() wire.PermissionRequested {
	a.t.Helper()
	events := a.read(0, wire.EventPermissionRequest)
	var asked wire.PermissionRequested
	require.NoError(a.t, json.Unmarshal(events[len(events)-1].Payload, &asked))
	return asked
}

func (a *agent) prompt(key, text string) wire.Turn {
	a.t.Helper()
	turn, err := a.s.Prompt(a.id, key, promptOf(text))
	require.NoError(a.t, err)
	return turn
}

func promptOf(text string) wire.PromptRequest {
	block, err := json.Marshal(sdk.TextBlock(text))
	must(err)
	return wire.PromptRequest{Blocks: []json.RawMessage{block}}
}

func (a *agent) awaitOutcome(turnID string) wire.TurnOutcome {
	a.t.Helper()
	var kept wire.KeptOutcome
	eventually(a.t, func() bool {
		var err error
		kept, err = a.s.TurnOutcome(a.id)
		require.NoError(a.t, err)
		return kept.Outcome != nil && kept.Outcome.TurnID == turnID
	})
	return *kept.Outcome
}

func (a *agent) stop(grace time.Duration) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	absent, err := a.s.Stop(ctx, a.id, grace)
	require.NoError(a.t, err)
	require.False(a.t, absent)
}

// calls is the agent's own log.
func (a *agent) calls() []string {
	a.t.Helper()
	b, err := os.ReadFile(filepath.Join(a.dir, "calls"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(a.t, err)
	return strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(b)), " ", ":"))
}

// child waits for the pid of the child that the agent left.
func (a *agent) child() int {
	a.t.Helper()
	var pid int
	eventually(a.t, func() bool {
		left, err := filepath.Glob(filepath.Join(a.dir, "child-*"))
		require.NoError(a.t, err)
		if len(left) != 1 {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimPrefix(filepath.Base(left[0]), "child-"))
		return err == nil
	})
	return pid
}

// read attaches after an event and reads, without acknowledging, until one of
// that kind has come.
func (a *agent) read(after int64, last wire.EventKind) []wire.Event {
	a.t.Helper()
	stream, err := a.s.Attach(a.id, after)
	require.NoError(a.t, err)
	defer stream.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var got []wire.Event
	for len(got) == 0 || got[len(got)-1].Kind != last {
		batch, err := stream.Next(ctx)
		require.NoError(a.t, err, "after %d events", len(got))
		got = append(got, batch...)
	}
	return got
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			require.FailNow(t, "the condition was not met in time")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func requireGone(t *testing.T, pid int) {
	t.Helper()
	_, err := process.Identity(pid)
	require.ErrorIs(t, err, process.ErrNoProcess)
}

func requireCode(t *testing.T, code wire.Code, err error) {
	t.Helper()
	require.ErrorIs(t, err, &wire.Error{Code: code})
}
