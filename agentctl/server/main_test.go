package server_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/instance"
	"github.com/kandev/recovery/agentctl/ownership"
	"github.com/kandev/recovery/agentctl/server"
	"github.com/kandev/recovery/agentctl/wire"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envAgent) != "":
		runAgent(os.Stdin, os.Stdout)
		return
	case os.Getenv(envControlServer) != "":
		if err := runControlServer(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	nonce    = "the-nonce"
	home     = "/the/home"
	logPath  = "/the/log"
	identity = "the-server"
	period   = time.Hour
	deadline = 10 * time.Second
)

// setup is what a test wants otherwise of its server.
type setup struct {
	period   time.Duration // zero: an hour
	clock    func() time.Time
	wrap     func(server.Instances) server.Instances
	detached bool
	bytes    int64 // kept of an instance's events; zero: 1 MiB
	logger   *zap.Logger
}

// running is a control server in this process: the real handler, supervisor and
// authority behind a real listener.
type running struct {
	*server.Server
	authority  *ownership.Authority
	supervisor *instance.Supervisor
	ended      chan struct{}
	err        error // of Run, once ended
}

// start serves until the test ends, and then checks that nothing is left.
func start(t testing.TB, clock func() time.Time) *running {
	t.Helper()
	return startWith(t, setup{clock: clock})
}

func startWith(t testing.TB, s setup) *running {
	t.Helper()
	if s.logger == nil {
		s.logger = zaptest.NewLogger(t)
	}
	r, err := serve(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(func() {
		r.authority.ShutdownFor(ownership.ReasonSignal)
		<-r.ended
		r.supervisor.Close()
		require.NoError(t, r.err)
	})
	return r
}

// serve starts a server as cmd/agentctl does.
func serve(ctx context.Context, s setup) (*running, error) {
	if s.period == 0 {
		s.period = period
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.wrap == nil {
		s.wrap = func(i server.Instances) server.Instances { return i }
	}
	if s.bytes == 0 {
		s.bytes = 1 << 20
	}
	ln, err := server.Listen(ctx, "127.0.0.1", 0)
	if err != nil {
		return nil, err
	}
	r := &running{
		authority: ownership.New(ownership.Config{Nonce: nonce, Period: s.period, Clock: s.clock}),
		supervisor: instance.NewSupervisor(instance.Config{
			EventLimit: 100, BytesPerInstance: s.bytes, Clock: time.Now, Logger: s.logger, BaseEnv: os.Environ(),
		}),
		ended: make(chan struct{}),
	}
	r.Server, err = server.New(server.Config{
		Authority: r.authority, Instances: s.wrap(r.supervisor), Identity: identity, Home: home,
		LogPath: logPath, Adjustments: []string{"one"}, Detached: s.detached, Logger: s.logger,
	}, ln)
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(r.ended)
		r.err = r.Run()
	}()
	return r, nil
}

// awaitEnd expects that the server ends by itself.
func (r *running) awaitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(deadline):
		t.Fatal("the server did not end")
	}
}

func (r *running) client(t testing.TB, credential string) *client.Client {
	t.Helper()
	c := client.New(client.Config{
		Endpoint: r.Endpoint(), Fingerprint: r.Fingerprint(), Credential: credential, HTTPTimeout: deadline,
	})
	t.Cleanup(c.Close)
	return c
}

// own makes the handshake and returns the owner's client and credential.
func (r *running) own(t testing.TB) (*client.Client, string) {
	t.Helper()
	stranger := r.client(t, "")
	issued, err := stranger.Handshake(t.Context(), nonce)
	require.NoError(t, err)
	return stranger.WithCredential(issued.Credential), issued.Credential
}

// agentRequest asks for this test binary as an agent.
func agentRequest(t testing.TB, env map[string]string) wire.CreateRequest {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	if env == nil {
		env = map[string]string{}
	}
	env[envAgent] = "1"
	return wire.CreateRequest{
		SessionID: "session-1", TaskID: "task-1", Generation: 1, Command: []string{self},
		Env: env, Roots: []string{t.TempDir()}, Mode: wire.ModeNew, RunID: "run-1",
	}
}

// createReady creates an agent and waits until it takes prompts.
func createReady(t testing.TB, c *client.Client, id string, env map[string]string) wire.Instance {
	t.Helper()
	created, err := c.Create(t.Context(), id, agentRequest(t, env))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		startup, err := c.Startup(t.Context(), id)
		return err == nil && startup.Phase == wire.PhaseReady
	}, deadline, 5*time.Millisecond)
	return created
}

func say(text string) wire.PromptRequest {
	block, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil {
		panic(err)
	}
	return wire.PromptRequest{Blocks: []json.RawMessage{block}}
}

// collect reads events until one of the kind, and returns all.
func collect(t *testing.T, s *client.EventStream, last wire.EventKind) []wire.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var all []wire.Event
	for {
		batch, err := s.Next(ctx)
		require.NoError(t, err)
		all = append(all, batch...)
		for _, event := range batch {
			if event.Kind == last {
				return all
			}
		}
	}
}

func alive(pid int) bool {
	process, err := os.FindProcess(pid)
	return err == nil && process.Signal(syscall.Signal(0)) == nil
}

// dialInsecure opens a TLS connection to whoever listens.
func dialInsecure(ctx context.Context, endpoint string) (net.Conn, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	return dialer.DialContext(ctx, "tcp", endpoint)
}
