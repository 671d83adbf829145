//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/launch"
	"github.com/kandev/recovery/agentctl/wire"
)

// What this test binary is, other than the tests.
const (
	envAgent  = "TEST_AGENT"  // an agent that takes prompts
	envParent = "TEST_PARENT" // a backend: the value is a parentSpec
)

const deadline = 20 * time.Second

var binary string // the control server under test

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envAgent) != "":
		runAgent()
	case os.Getenv(envParent) != "":
		if err := runParent(os.Getenv(envParent)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(runTests(m))
	}
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "agentctl")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "agentctl")
	if output, err := exec.Command("go", "build", "-race", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n%v\n", output, err)
		return 1
	}
	return m.Run()
}

// runAgent answers what opening a conversation needs, until it is ended.
func runAgent() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			panic(err)
		}
		switch m.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}`+"\n", m.ID)
		case "session/new":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"provider-1"}}`+"\n", m.ID)
		}
	}
}

// parentSpec tells a parent what to start, and whether to record it.
type parentSpec struct {
	Binary string
	Config wire.StartConfig
	Record bool
}

// born is what a parent tells of the server that it started.
type born struct {
	PID         int
	Endpoint    string
	Fingerprint string
	Credential  string
}

// runParent starts a control server, says so, and lives on until it is killed.
func runParent(encoded string) error {
	var spec parentSpec
	if err := json.Unmarshal([]byte(encoded), &spec); err != nil {
		return err
	}
	l, err := launch.Start(context.Background(), launch.Spec{
		Executable: spec.Binary, Config: spec.Config, HTTPTimeout: deadline, Logger: zap.NewNop(),
	})
	if err != nil {
		return err
	}
	if spec.Record {
		if err := l.Recorded(); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(born{
		PID: l.PID, Endpoint: l.Endpoint, Fingerprint: l.Fingerprint, Credential: l.Issued.Credential,
	}); err != nil {
		return err
	}
	select {}
}

// backend is a backend process of its own.
type backend struct {
	*exec.Cmd
	born
}

func startParent(t *testing.T, config wire.StartConfig, record bool) *backend {
	t.Helper()
	spec, err := json.Marshal(parentSpec{Binary: binary, Config: config, Record: record})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	p := &backend{Cmd: exec.Command(self)}
	p.Env = append(os.Environ(), envParent+"="+string(spec), "KANDEV_PARENT_PIPE_FD=9", "BACKEND_SECRET=hunter2")
	p.Stderr = os.Stderr
	inherited, other, err := os.Pipe()
	require.NoError(t, err)
	p.ExtraFiles = []*os.File{inherited}
	t.Cleanup(func() { inherited.Close(); other.Close() })
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(p.kill)
	require.NoError(t, json.NewDecoder(out).Decode(&p.born))
	t.Cleanup(func() { // whatever failed, leave nothing running
		if c := p.client(); c != nil {
			_ = c.Shutdown(context.Background())
			c.Close()
		}
		require.Eventually(t, func() bool { return !running(p.PID) }, deadline, 10*time.Millisecond)
	})
	return p
}

// kill ends the parent as a crash does, and reaps it.
func (p *backend) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

func (p *backend) client() *client.Client {
	return client.New(client.Config{
		Endpoint: p.Endpoint, Fingerprint: p.Fingerprint, Credential: p.Credential, HTTPTimeout: deadline,
	})
}

func config(t *testing.T, detached bool) wire.StartConfig {
	t.Helper()
	return wire.StartConfig{
		Home: t.TempDir(), Host: "127.0.0.1", Detached: detached,
		UnownedPeriodMS: 600_000, IdleTimeoutMS: 3_600_000, EventLimit: 100,
	}
}

// startAgent creates an instance and waits until it is ready.
func startAgent(t *testing.T, c *client.Client, id string) wire.Instance {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	_, err = c.Create(t.Context(), id, wire.CreateRequest{
		SessionID: "session-1", Generation: 1, Command: []string{self}, Mode: wire.ModeNew,
		Env: map[string]string{envAgent: "1", "AGENT_SECRET": "hunter3"}, Roots: []string{t.TempDir()},
	})
	require.NoError(t, err)
	var detail wire.InstanceDetail
	require.Eventually(t, func() bool {
		detail, err = c.Get(t.Context(), id)
		return err == nil && detail.State == wire.InstanceReady
	}, deadline, 10*time.Millisecond)
	return detail.Instance
}
