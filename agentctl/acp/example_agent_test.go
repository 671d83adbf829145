package acp

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// B-9, S-001.10: a whole turn, and a cancelled one, with the example agent of
// the SDK as a process.
func TestExampleAgent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	binary := filepath.Join(t.TempDir(), "agent.exe")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput()
	require.NoError(t, err, string(out))

	cmd := exec.CommandContext(ctx, binary)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	s := &script{t: t, notes: newNotes(), ended: make(chan wire.TurnOutcome, 2)}
	agent := Open(Config{
		Stdin: stdin, Stdout: stdout, Recorder: s.notes, Logger: zap.NewNop(), Clock: time.Now,
		Hooks: Hooks{TurnEnded: func(o wire.TurnOutcome) { s.ended <- o }},
	})
	t.Cleanup(func() {
		agent.Close()
		require.NoError(t, cmd.Wait(), "the agent ends with its input")
	})

	caps, err := agent.Initialize(ctx)
	require.NoError(t, err)
	require.Equal(t, Capabilities{}, caps)
	id, err := agent.NewSession(ctx, t.TempDir())
	require.NoError(t, err)
	require.NotEmpty(t, id)
	blocks := []json.RawMessage{[]byte(`{"type":"text","text":"go"}`)}

	require.NoError(t, agent.Prompt("t-1", "k1", blocks))
	s.eventually(func() bool { return len(s.recorded(wire.EventUpdate)) == 1 })
	require.NoError(t, agent.Cancel())
	require.Equal(t, "cancelled", s.awaitEnd().StopReason)

	require.NoError(t, agent.Prompt("t-2", "k2", blocks))
	s.eventually(func() bool { return len(s.recorded(wire.EventPermissionRequest)) == 1 })
	var request wire.PermissionRequested
	require.NoError(t, json.Unmarshal(s.recorded(wire.EventPermissionRequest)[0].Payload, &request))
	require.NoError(t, agent.AnswerPermission(request.RequestID, wire.PermissionAnswer{OptionID: "reject"}))
	require.Equal(t, "end_turn", s.awaitEnd().StopReason)
	require.Equal(t, []string{
		"turn_started", "update", "turn_ended",
		"turn_started", "update", "update", "update", "update", "update", "update",
		"permission_request", "permission_settled", "update", "turn_ended",
	}, s.notes.kinds())
}
