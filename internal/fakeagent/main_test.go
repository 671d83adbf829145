package fakeagent

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
)

const envBeAgent = "FAKEAGENT_TEST_BE_AGENT"

// TestMain lets the test binary be the agent itself, and its grandchild.
func TestMain(m *testing.M) {
	if os.Getenv(envBeAgent) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	// The SDK reads its logger while SetLogger would write it.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

const patience = 10 * time.Second

// driver is a client at the other end of a real agent process.
type driver struct {
	t      *testing.T
	acp    *acp.ClientSideConnection
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	state  string
	log    string
	cwd    string
	exited chan struct{}
	status error

	mu      sync.Mutex
	updates []acp.SessionUpdate
	answer  func(context.Context) acp.RequestPermissionOutcome
}

// home is where agents of one test keep their records.
type home struct{ state, log, cwd string }

func newHome(t *testing.T) home {
	dir := t.TempDir()
	h := home{state: filepath.Join(dir, "state"), log: filepath.Join(dir, "calls.jsonl"), cwd: filepath.Join(dir, "cwd")}
	require.NoError(t, os.Mkdir(h.cwd, 0o755))
	return h
}

func spawnAgent(t *testing.T, h home, args ...string) *driver {
	t.Helper()
	d := &driver{t: t, state: h.state, log: h.log, cwd: h.cwd, exited: make(chan struct{})}
	d.answer = func(context.Context) acp.RequestPermissionOutcome {
		return acp.NewRequestPermissionOutcomeSelected(OptionAllow)
	}
	d.cmd = exec.Command(os.Args[0], append([]string{"--state", h.state, "--log", h.log}, args...)...)
	d.cmd.Env = append(os.Environ(), envBeAgent+"=1")
	d.cmd.Stderr = os.Stderr
	var err error
	d.stdin, err = d.cmd.StdinPipe()
	require.NoError(t, err)
	// A pipe of our own: Wait must not close it while a grandchild writes.
	read, write, err := os.Pipe()
	require.NoError(t, err)
	d.cmd.Stdout = write
	require.NoError(t, d.cmd.Start())
	require.NoError(t, write.Close())
	go func() {
		d.status = d.cmd.Wait()
		close(d.exited)
	}()
	d.acp = acp.NewClientSideConnection(d, d.stdin, read)
	t.Cleanup(func() {
		d.kill()
		require.NoError(t, read.Close())
	})
	return d
}

func (d *driver) kill() {
	if err := d.cmd.Process.Kill(); err != nil {
		require.ErrorIs(d.t, err, os.ErrProcessDone)
	}
	d.awaitExit()
}

func (d *driver) awaitExit() int {
	d.t.Helper()
	select {
	case <-d.exited:
	case <-time.After(patience):
		require.Fail(d.t, "the agent did not end")
	}
	return d.cmd.ProcessState.ExitCode()
}

func (d *driver) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	d.t.Cleanup(cancel)
	return ctx
}

func (d *driver) initialize() (acp.InitializeResponse, error) {
	return d.acp.Initialize(d.ctx(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber})
}

// open initializes the agent and begins a new session.
func (d *driver) open() acp.SessionId {
	d.t.Helper()
	_, err := d.initialize()
	require.NoError(d.t, err)
	s, err := d.acp.NewSession(d.ctx(), acp.NewSessionRequest{Cwd: d.cwd, McpServers: []acp.McpServer{}})
	require.NoError(d.t, err)
	return s.SessionId
}

func (d *driver) prompt(id acp.SessionId, script string) (acp.PromptResponse, error) {
	return d.acp.Prompt(d.ctx(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(script)}})
}

func (d *driver) load(id acp.SessionId) error {
	_, err := d.acp.LoadSession(d.ctx(), acp.LoadSessionRequest{SessionId: id, Cwd: d.cwd, McpServers: []acp.McpServer{}})
	return err
}

// texts of the agent's updates, in order.
func (d *driver) texts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, u := range d.updates {
		if u.AgentMessageChunk != nil {
			all = append(all, u.AgentMessageChunk.Content.Text.Text)
		}
	}
	return all
}

func (d *driver) numbers() []int {
	var all []int
	for _, text := range d.texts() {
		u, ok := ParseUpdate(text)
		require.True(d.t, ok, "update %q has no numbers", text)
		all = append(all, u.N)
	}
	return all
}

func (d *driver) methods() []string {
	calls, err := ReadCalls(d.log)
	require.NoError(d.t, err)
	var all []string
	for _, c := range calls {
		all = append(all, c.Method)
	}
	return all
}

func (d *driver) history() History {
	all, err := ReadHistories(d.state)
	require.NoError(d.t, err)
	require.Len(d.t, all, 1)
	return all[0]
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

func (d *driver) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.updates = append(d.updates, n.Update)
	return nil
}

func (d *driver) RequestPermission(ctx context.Context, _ acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	return acp.RequestPermissionResponse{Outcome: d.answer(ctx)}, nil
}

func (d *driver) ReadTextFile(context.Context, acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	return acp.ReadTextFileResponse{}, acp.NewMethodNotFound("")
}

func (d *driver) WriteTextFile(context.Context, acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	return acp.WriteTextFileResponse{}, acp.NewMethodNotFound("")
}

func (d *driver) CreateTerminal(context.Context, acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	return acp.CreateTerminalResponse{}, acp.NewMethodNotFound("")
}

func (d *driver) KillTerminal(context.Context, acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	return acp.KillTerminalResponse{}, acp.NewMethodNotFound("")
}

func (d *driver) TerminalOutput(context.Context, acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	return acp.TerminalOutputResponse{}, acp.NewMethodNotFound("")
}

func (d *driver) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	return acp.ReleaseTerminalResponse{}, acp.NewMethodNotFound("")
}

func (d *driver) WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error) {
	return acp.WaitForTerminalExitResponse{}, acp.NewMethodNotFound("")
}
