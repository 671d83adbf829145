//go:build unix

package activities_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/kandev/recovery/activities"
	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/instance"
	"github.com/kandev/recovery/agentctl/ownership"
	"github.com/kandev/recovery/agentctl/server"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/counters"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
	"github.com/kandev/recovery/workflows"
)

const (
	// readTimeout is what the silent route costs, twice.
	readTimeout = 2 * time.Second
	// stopTimeout is for what does answer, on a machine that is busy.
	stopTimeout = time.Minute
)

// survivors is a real control server with real agents, of whose routes one does
// not answer for one instance: that of the kept outcome.
type survivors struct {
	server.Instances
	silent  string
	asked   chan struct{}
	release chan struct{}

	client *client.Client
	owner  owner.Server
}

// TurnOutcome implements server.Instances.
func (s *survivors) TurnOutcome(id string) (wire.KeptOutcome, error) {
	if id == s.silent {
		select {
		case s.asked <- struct{}{}:
		default:
		}
		<-s.release
	}
	return s.Instances.TurnOutcome(id)
}

// Client implements activities.Source.
func (s *survivors) Client() (*client.Client, owner.Server, error) { return s.client, s.owner, nil }

func survive(t *testing.T, silent string) *survivors {
	t.Helper()
	s := &survivors{silent: silent, asked: make(chan struct{}, 1), release: make(chan struct{})}
	supervisor := instance.NewSupervisor(instance.Config{
		EventLimit: 100, Clock: time.Now, Logger: zap.NewNop(), BaseEnv: os.Environ(),
	})
	s.Instances = supervisor
	authority := ownership.New(ownership.Config{Nonce: "nonce", Period: time.Hour, Clock: time.Now})
	listener, err := server.Listen(t.Context(), "127.0.0.1", 0)
	require.NoError(t, err)
	srv, err := server.New(server.Config{
		Authority: authority, Instances: s, Identity: "server", Home: "/home", Logger: zap.NewNop(),
	}, listener)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- srv.Run() }()
	t.Cleanup(func() {
		close(s.release)
		authority.ShutdownFor(ownership.ReasonSignal)
		require.NoError(t, <-ended)
		supervisor.Close()
	})
	stranger := client.New(client.Config{
		Endpoint: srv.Endpoint(), Fingerprint: srv.Fingerprint(), HTTPTimeout: 30 * time.Second,
	})
	t.Cleanup(stranger.Close)
	issued, err := stranger.Handshake(t.Context(), "nonce")
	require.NoError(t, err)
	s.client, s.owner = stranger.WithCredential(issued.Credential), owner.Server{Identity: "server", RotationID: issued.RotationID}
	return s
}

// launch gives a session an agent that is in the middle of a turn.
func (s *survivors) launch(t *testing.T, db *store.Store, execution, prompt string) string {
	t.Helper()
	ctx := t.Context()
	root := t.TempDir()
	session, err := db.CreateSession(ctx, store.NewSession{Installation: inst, ProfileID: "p", Workspace: root, Roots: []string{root}})
	require.NoError(t, err)
	_, err = db.BeginStart(ctx, store.Start{Installation: inst, SessionID: session.ID, ExecutionID: execution, BootID: "before"})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	_, err = s.client.Create(ctx, execution, wire.CreateRequest{
		SessionID: session.ID, TaskID: session.TaskID, Generation: 1, Roots: []string{root}, Mode: wire.ModeNew, RunID: execution,
		Command: []string{self, playAgent, "--state", t.TempDir()},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		startup, err := s.client.Startup(ctx, execution)
		return err == nil && startup.Phase == wire.PhaseReady
	}, time.Minute, 10*time.Millisecond)
	detail, err := s.client.Get(ctx, execution)
	require.NoError(t, err)
	_, err = db.PublishStarted(ctx, store.Started{
		Installation: inst, SessionID: session.ID, ExecutionID: execution, BootID: "before", ServerIdentity: "server",
		PID: detail.PID, ProcessStart: detail.ProcessStart, ProviderSessionID: detail.ProviderSessionID,
	})
	require.NoError(t, err)
	text, err := json.Marshal(map[string]string{"type": "text", "text": prompt})
	require.NoError(t, err)
	_, _, err = db.RecordTurn(ctx, inst, session.ID, "key", append(append([]byte{'['}, text...), ']'), "before")
	require.NoError(t, err)
	turn, err := s.client.Prompt(ctx, execution, "key", wire.PromptRequest{Blocks: []json.RawMessage{text}})
	require.NoError(t, err)
	require.NoError(t, db.MarkTurnSent(ctx, inst, session.ID, "key", turn.TurnID))
	return session.ID
}

type pumped struct {
	mu       sync.Mutex
	sessions []string
}

// Start implements activities.Pumps.
func (p *pumped) Start(session, _ string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions = append(p.sessions, session)
}

// S-004.5: an instance whose kept outcome does not answer, while all else of it
// does, is not re-tracked but stopped, and is never published as running: its
// turn may have ended. One that answers that none is kept, and has an open turn,
// is running.
func TestUnansweredOutcomeIsNotNone(t *testing.T) {
	db, executions, pumps := storetest.Open(t), execution.New(), &pumped{}
	require.NoError(t, db.EnsureInstallation(t.Context(), inst))
	require.NoError(t, db.PutProfile(t.Context(), inst, store.Profile{ID: "p", Agent: "fake", Command: []string{"fake"}}))
	s := survive(t, "silent")
	silent := s.launch(t, db, "silent", "end")
	open := s.launch(t, db, "open", "wait file never")
	require.Eventually(t, func() bool {
		kept, err := s.Instances.TurnOutcome("silent")
		return err == nil && kept.Outcome != nil
	}, time.Minute, 10*time.Millisecond)

	report := recoverAll(t, db, executions, pumps, s)
	require.Len(t, s.asked, 1, "the outcome was asked for")
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeReadFailed: 1, recovery.OutcomeRetracked: 1}, report.Counts)

	_, tracked := executions.Get(silent)
	require.False(t, tracked)
	listed, err := s.client.List(t.Context())
	require.NoError(t, err)
	require.Len(t, listed, 1, "the silent one was stopped")
	require.Equal(t, "open", listed[0].ID)
	requireState(t, db, silent, recovery.StateInterrupted)

	_, tracked = executions.Get(open)
	require.True(t, tracked)
	requireState(t, db, open, recovery.StateRunning)
	require.Equal(t, []string{open}, pumps.sessions)
}

func requireState(t *testing.T, db *store.Store, session string, want recovery.SessionState) {
	t.Helper()
	got, err := db.GetSession(t.Context(), inst, session)
	require.NoError(t, err)
	require.Equal(t, want, got.State)
}

// recoverAll runs the real pass with the real activities, but those of the
// credential: the server is in use already.
func recoverAll(t *testing.T, db *store.Store, executions *execution.Store, pumps *pumped, s *survivors) calls.AdoptionReport {
	t.Helper()
	counted := counters.New(zap.NewNop())
	agents := &activities.Instances{
		Store: db, Source: s, Executions: executions, Pumps: pumps, Counters: counted, Logger: zap.NewNop(),
		Installation: inst, BootID: boot, ReadTimeout: readTimeout,
	}
	inventory := &activities.Inventory{
		Store: db, Executions: executions, Counters: counted, Logger: zap.NewNop(), Installation: inst, BootID: boot,
		Report: func(calls.ReportInput) {},
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.RegisterWorkflowWithOptions(workflows.Adoption, workflow.RegisterOptions{Name: workflows.TypeAdoption})
	env.RegisterWorkflowWithOptions(workflows.StopWithRetry, workflow.RegisterOptions{Name: workflows.TypeStopWithRetry})
	locate := func(context.Context, calls.Pass) (calls.Located, error) {
		return calls.Located{Recorded: true, ServerIdentity: "server", InUse: true}, nil
	}
	for name, fn := range map[string]any{
		calls.TakeGuards: inventory.TakeGuards, calls.ClosePass: inventory.ClosePass, calls.ProbeRecords: inventory.ProbeRecords,
		calls.ReconcileRecords: inventory.ReconcileRecords, calls.ReportPass: inventory.ReportPass,
		calls.EnumerateInstances: agents.EnumerateInstances, calls.ObserveSession: agents.ObserveSession,
		calls.PublishSession: agents.PublishSession, calls.StopInstance: agents.StopInstance, calls.LocateServer: locate,
	} {
		env.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
	env.ExecuteWorkflow(workflows.TypeAdoption, calls.AdoptionInput{
		Pass: calls.Pass{Installation: inst, BootID: boot, Number: 1}, Survival: true,
		Deadline: 5 * time.Minute, ReadTimeout: stopTimeout, ReadRetries: 1,
	})
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	var report calls.AdoptionReport
	require.NoError(t, env.GetWorkflowResult(&report))
	return report
}
