package pump_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/controltest"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/backend/pump"
	"github.com/kandev/recovery/internal/stack/postgrestest"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
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
	inst     = "installation"
	boot     = "boot"
	instance = "instance-1"
	waitFor  = 30 * time.Second
	tick     = 5 * time.Millisecond
)

// bench is a session with a real control server on one side, a real database on
// the other, and pumps between them.
type bench struct {
	*store.Store
	journal *journal
	server  *controltest.Server
	agent   *controltest.Agent
	owner   *owner.Owner
	pumps   *pump.Pumps
	changes *pump.Notifier
	session string

	superseded chan owner.Server
	endings    chan pump.Ending
	refuseEnd  func() error
}

func setUp(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		Store: storetest.Open(t), server: controltest.Start(t, time.Hour), changes: pump.NewNotifier(),
		superseded: make(chan owner.Server, 8), endings: make(chan pump.Ending, 8),
		refuseEnd: func() error { return nil },
	}
	b.journal = &journal{Store: b.Store}
	b.agent = b.server.Add(instance, 100)
	b.owner = owner.New(owner.Config{
		Logger: zap.NewNop(), Clock: time.Now, CallTimeout: 5 * time.Second,
		Superseded: func(s owner.Server) { b.superseded <- s },
	})
	t.Cleanup(b.owner.Close)
	b.owner.Use(b.server.Owner)
	b.pumps = pump.New(pump.Config{
		Installation: inst, BootID: boot, Journal: b.journal, Source: b.owner, Notifier: b.changes,
		Logger: zap.NewNop(), Clock: time.Now, RetryFrom: time.Millisecond, RetryUpTo: 10 * time.Millisecond,
		Ended: func(_ context.Context, e pump.Ending) error {
			if err := b.refuseEnd(); err != nil {
				return err
			}
			b.endings <- e
			return nil
		},
	})
	t.Cleanup(b.pumps.StopAll)
	b.session = b.newSession(t)
	return b
}

// newSession returns a session that waits for input.
func (b *bench) newSession(t *testing.T) string {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, b.EnsureInstallation(ctx, inst))
	require.NoError(t, b.PutProfile(ctx, inst, store.Profile{ID: "p", Agent: "fake", Command: []string{"fake"}}))
	s, err := b.CreateSession(ctx, store.NewSession{Installation: inst, ProfileID: "p", Workspace: "/w", Roots: []string{"/w"}})
	require.NoError(t, err)
	_, err = b.BeginStart(ctx, store.Start{Installation: inst, SessionID: s.ID, ExecutionID: instance + s.ID, BootID: boot})
	require.NoError(t, err)
	_, err = b.PublishStarted(ctx, store.Started{
		Installation: inst, SessionID: s.ID, ExecutionID: instance + s.ID, BootID: boot, ServerIdentity: "server",
	})
	require.NoError(t, err)
	return s.ID
}

func (b *bench) update(t *testing.T, n int) {
	t.Helper()
	for range n {
		b.agent.Append(t, wire.EventUpdate, "", map[string]int{"of": n})
	}
}

// committed waits until exactly n events are committed and returns them.
func (b *bench) committed(t *testing.T, n int) []store.Event {
	t.Helper()
	var events []store.Event
	require.Eventually(t, func() bool {
		var err error
		events, err = b.EventsAfter(t.Context(), inst, b.session, 0, 10_000)
		return err == nil && len(events) >= n
	}, waitFor, tick)
	require.Len(t, events, n)
	return events
}

// inOrder requires the numbers and positions 1 to n.
func inOrder(t *testing.T, events []store.Event) {
	t.Helper()
	for i, e := range events {
		require.EqualValues(t, i+1, e.Seq)
		require.EqualValues(t, i+1, e.Position)
	}
}

// acknowledged waits until the server has dropped everything up to n.
func (b *bench) acknowledged(t *testing.T, n int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		first, _ := b.agent.Log.Bounds()
		return first == n+1
	}, waitFor, tick)
}

func (b *bench) detached(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return !b.agent.Log.Attached() }, waitFor, tick)
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(waitFor):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// journal is the store with a say in what commits answer.
type journal struct {
	*store.Store
	mu      sync.Mutex
	commit  func(ctx context.Context, b store.Batch) (int64, error)
	shared  func(ctx context.Context, b []store.Batch) ([]bool, error)
	batches []store.Batch
}

func (j *journal) intercept(commit func(ctx context.Context, b store.Batch) (int64, error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.commit = commit
}

func (j *journal) asked() []store.Batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]store.Batch(nil), j.batches...)
}

// AppendTogether leaves everything to CommitEvents while that is intercepted.
func (j *journal) AppendTogether(ctx context.Context, batches []store.Batch) ([]bool, error) {
	j.mu.Lock()
	intercepted, shared := j.commit != nil, j.shared
	if !intercepted {
		j.batches = append(j.batches, batches...)
	}
	j.mu.Unlock()
	switch {
	case intercepted:
		return make([]bool, len(batches)), nil
	case shared != nil:
		return shared(ctx, batches)
	default:
		return j.Store.AppendTogether(ctx, batches)
	}
}

func (j *journal) CommitEvents(ctx context.Context, b store.Batch) (int64, error) {
	j.mu.Lock()
	commit := j.commit
	j.batches = append(j.batches, b)
	j.mu.Unlock()
	if commit == nil {
		return j.Store.CommitEvents(ctx, b)
	}
	return commit(ctx, b)
}
