package api_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/api"
	"github.com/kandev/recovery/internal/backend/controltest"
	"github.com/kandev/recovery/internal/backend/counters"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/liveness"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/backend/pump"
	"github.com/kandev/recovery/internal/stack/postgrestest"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
	"github.com/kandev/recovery/userapi"
)

func TestMain(m *testing.M) {
	code := postgrestest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error())
		code = 1
	}
	os.Exit(code)
}

const (
	inst    = "installation"
	boot    = "boot"
	token   = "token"
	waitFor = 30 * time.Second
	tick    = 5 * time.Millisecond
)

// engine records what was asked of it, in place of Temporal.
type engine struct {
	mu      sync.Mutex
	resumes []string
	stops   []stop
	refuse  func() error
}

type stop struct{ session, instance, request string }

func (e *engine) StartResume(_ context.Context, session string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.resumes = append(e.resumes, session)
	if e.refuse != nil {
		return e.refuse()
	}
	return nil
}

func (e *engine) StartStop(_ context.Context, session, instance, request string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stops = append(e.stops, stop{session, instance, request})
	if e.refuse != nil {
		return e.refuse()
	}
	return nil
}

// bench is a backend without its boot: the server, a user's client, and the real
// parts behind it.
type bench struct {
	*userapi.Client
	store      *store.Store
	executions *execution.Store
	owner      *owner.Owner
	control    *controltest.Server
	engine     *engine
	changes    *pump.Notifier
	pumps      *pump.Pumps

	server  *api.Server
	address string
	state   userapi.Status
}

// listen starts a server that has no services yet.
func listen(t *testing.T) *bench {
	t.Helper()
	b := &bench{state: userapi.Status{BootID: boot, Phase: userapi.PhaseWaitingPostgres, WaitingFor: "Postgres"}}
	b.server = api.New(api.Config{
		Address: "127.0.0.1:0", Token: token, Counters: counters.New(zap.NewNop()), Logger: zap.NewNop(),
		Heartbeat: 50 * time.Millisecond,
		Status:    func() userapi.Status { return b.state },
	})
	var err error
	b.address, err = b.server.Listen()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.shutdown()) })
	b.Client = userapi.NewClient("http://"+b.address, token)
	return b
}

func (b *bench) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return b.server.Shutdown(ctx)
}

// serve starts a server with all of its services and a profile "p".
func serve(t *testing.T) *bench {
	t.Helper()
	b := listen(t)
	b.store, b.executions, b.control = storetest.Open(t), execution.New(), controltest.Start(t, time.Hour)
	b.engine, b.changes = &engine{}, pump.NewNotifier()
	b.owner = owner.New(owner.Config{
		Logger: zap.NewNop(), Clock: time.Now, CallTimeout: 5 * time.Second,
		Superseded: func(s owner.Server) { b.executions.DropServer(s.Identity) },
	})
	t.Cleanup(b.owner.Close)
	b.owner.Use(b.control.Owner)
	b.pumps = pump.New(pump.Config{
		Installation: inst, BootID: boot, Journal: b.store, Source: b.owner, Notifier: b.changes,
		Logger: zap.NewNop(), Clock: time.Now, Ended: func(context.Context, pump.Ending) error { return nil },
	})
	t.Cleanup(b.pumps.StopAll)
	require.NoError(t, b.store.EnsureInstallation(t.Context(), inst))
	b.executions.OpenLaunches()
	b.server.Serve(api.Services{
		Installation: inst, BootID: boot, Store: b.store, Executions: b.executions,
		Owner: b.owner, Engine: b.engine, Changes: b.changes, Liveness: b.liveness(),
	})
	require.NoError(t, b.PutProfile(t.Context(), userapi.Profile{ID: "p", Agent: "fake", Command: []string{"fake"}}))
	return b
}

// liveness is a checker that no pass has completed: every session that recovery
// holds stays unknown.
func (b *bench) liveness() *liveness.Checker {
	return &liveness.Checker{
		Store: b.store, Owner: b.owner, Executions: b.executions, Logger: zap.NewNop(),
		Installation: inst, BootID: boot, ReadTimeout: time.Second,
	}
}

// create asks for a session in a fresh directory; its agent is not started.
func (b *bench) create(t *testing.T) userapi.Session {
	t.Helper()
	s, err := b.CreateSession(t.Context(), userapi.CreateSession{ProfileID: "p", Workspace: t.TempDir()})
	require.NoError(t, err)
	return s
}

// begin writes down the start of the session's agent, as a launch does.
func (b *bench) begin(t *testing.T, session, instance string) {
	t.Helper()
	_, err := b.store.BeginStart(t.Context(), store.Start{
		Installation: inst, SessionID: session, ExecutionID: instance, BootID: boot,
	})
	require.NoError(t, err)
}

// launch gives the session a tracked agent that waits for input.
func (b *bench) launch(t *testing.T, session, instance string) *controltest.Agent {
	t.Helper()
	agent := b.control.Add(instance, 100)
	b.begin(t, session, instance)
	_, err := b.store.PublishStarted(t.Context(), store.Started{
		Installation: inst, SessionID: session, ExecutionID: instance, BootID: boot,
		ServerIdentity: b.control.Owner.Identity, PID: 4711, ProcessStart: "x",
	})
	require.NoError(t, err)
	require.NoError(t, b.executions.TrackLaunched(execution.Execution{
		SessionID: session, InstanceID: instance, Generation: 1, PID: 4711, ServerIdentity: b.control.Owner.Identity,
	}))
	b.pumps.Start(session, instance)
	return agent
}

// running is a session with an agent.
func (b *bench) running(t *testing.T) (string, *controltest.Agent) {
	t.Helper()
	s := b.create(t)
	return s.ID, b.launch(t, s.ID, "instance-"+s.ID)
}

// position waits until the session has n committed events.
func (b *bench) position(t *testing.T, session string, n int64) userapi.Session {
	t.Helper()
	var s userapi.Session
	require.Eventually(t, func() bool {
		var err error
		s, err = b.Session(t.Context(), session)
		return err == nil && s.Position >= n
	}, waitFor, tick)
	return s
}

// refused asserts the code of a refusal, and that it says what to do.
func refused(t *testing.T, code userapi.Code, err error) *userapi.Error {
	t.Helper()
	var refusal *userapi.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, code, refusal.Code, refusal.Message)
	require.NotEmpty(t, refusal.Message)
	return refusal
}

func updates(t *testing.T, agent *controltest.Agent, n int) {
	t.Helper()
	for i := range n {
		agent.Append(t, wire.EventUpdate, "", map[string]int{"n": i})
	}
}

func symlink(t *testing.T, target string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(target, link))
	return link
}
