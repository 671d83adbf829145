package tied

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/backend/pump"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

const (
	inst    = "installation"
	boot    = "this boot"
	earlier = "an earlier boot"
	waitFor = 30 * time.Second
	tick    = 5 * time.Millisecond
)

// resumes are those that run; an error is what Temporal's silence is.
type resumes struct {
	mu      sync.Mutex
	running map[string]bool
	err     error
	asked   int // times
}

func (r *resumes) Running(_ context.Context, session string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return r.running[session], r.err
}

func (r *resumes) askedTwice() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked > 1
}

// bench is a settler with its real store.
type bench struct {
	*Settler
	t       *testing.T
	resumes *resumes
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db := storetest.Open(t)
	require.NoError(t, db.EnsureInstallation(t.Context(), inst))
	require.NoError(t, db.PutProfile(t.Context(), inst, store.Profile{ID: "p", Agent: "p", Command: []string{"p"}}))
	b := &bench{t: t, resumes: &resumes{running: map[string]bool{}}}
	b.Settler = &Settler{
		Store: db, Server: New(Config{Logger: zap.NewNop()}), Resumes: b.resumes, Notifier: pump.NewNotifier(), Logger: zap.NewNop(),
		Installation: inst, BootID: boot, RetryFrom: time.Millisecond, RetryUpTo: 10 * time.Millisecond,
	}
	return b
}

// starting makes a session whose start was written down by an earlier boot. Its
// id is that of its execution too.
func (b *bench) starting(passthrough bool) string {
	b.t.Helper()
	session, err := b.Store.CreateSession(b.t.Context(), store.NewSession{Installation: inst, ProfileID: "p", Passthrough: passthrough})
	require.NoError(b.t, err)
	_, err = b.Store.BeginStart(b.t.Context(), store.Start{Installation: inst, SessionID: session.ID, ExecutionID: session.ID, BootID: earlier})
	require.NoError(b.t, err)
	return session.ID
}

// waiting makes one whose agent is the process, on the server.
func (b *bench) waiting(passthrough bool, server, boot string, pid int, start string) string {
	b.t.Helper()
	id := b.starting(passthrough)
	_, err := b.Store.PublishStarted(b.t.Context(), store.Started{
		Installation: inst, SessionID: id, ExecutionID: id, BootID: boot, ServerIdentity: server,
		PID: pid, ProcessStart: start, ProviderSessionID: "token",
	})
	require.NoError(b.t, err)
	return id
}

func (b *bench) state(id string) recovery.SessionState { return b.session(id).State }

func (b *bench) session(id string) store.Session {
	b.t.Helper()
	session, err := b.Store.GetSession(context.Background(), inst, id)
	require.NoError(b.t, err)
	return session
}

// child is a process that lives until the test kills it.
func child(t *testing.T) (pid int, start string, kill func()) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	var once sync.Once
	kill = func() {
		once.Do(func() {
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait())
		})
	}
	t.Cleanup(kill)
	start, err := process.Identity(cmd.Process.Pid)
	require.NoError(t, err)
	return cmd.Process.Pid, start, kill
}

// S-005.3, S-002.7, W-3, W-7, B-12: what is settled in one look, and what is not.
// Only an agent that is proven gone is; what somebody else has is left to it.
func TestOneLook(t *testing.T) {
	b := newBench(t)
	pid, start, _ := child(t)
	b.Server.inUse = &running{server: owner.Server{Identity: "in use"}}
	sessions := map[string]struct {
		id   string
		want recovery.SessionState
	}{
		"its process is gone":             {b.waiting(true, "gone", earlier, pid, "another start"), recovery.StateInterrupted},
		"its process is there":            {b.waiting(true, "gone", earlier, pid, start), recovery.StateWaitingForInput},
		"its process is not known":        {b.waiting(true, "gone", earlier, pid, ""), recovery.StateWaitingForInput},
		"on the server in use":            {b.waiting(true, "in use", boot, pid, "another start"), recovery.StateWaitingForInput},
		"not a passthrough session":       {b.waiting(false, "gone", earlier, pid, "another start"), recovery.StateWaitingForInput},
		"its user asked for its stop":     {b.waiting(true, "gone", earlier, pid, "another start"), recovery.StateWaitingForInput},
		"its start is running":            {b.starting(true), recovery.StateStarting},
		"its start is not running":        {b.starting(true), recovery.StateInterrupted},
		"a start of an ordinary session":  {b.starting(false), recovery.StateStarting},
		"a server of this boot was ended": {b.waiting(true, "gone", boot, pid, "another start"), recovery.StateInterrupted},
	}
	_, err := b.Store.RequestStop(t.Context(), store.StopRequest{Installation: inst, SessionID: sessions["its user asked for its stop"].id, RequestID: "r"})
	require.NoError(t, err)
	b.resumes.running[sessions["its start is running"].id] = true

	require.ErrorIs(t, b.round(t.Context()), errUnsettled)
	for name, s := range sessions {
		require.Equal(t, s.want, b.state(s.id), name)
	}
	gone := b.session(sessions["its process is gone"].id)
	require.Equal(t, CauseBackendEnded, gone.Cause)
	require.Equal(t, "token", gone.ProviderSessionID)
	require.Equal(t, CauseServerEnded, b.session(sessions["a server of this boot was ended"].id).Cause)
}

// S-003.6: a start of which Temporal does not say whether it is running is not
// settled.
func TestAStartThatCannotBeJudged(t *testing.T) {
	b := newBench(t)
	id := b.starting(true)
	b.resumes.err = errors.New("no answer")
	require.ErrorIs(t, b.round(t.Context()), b.resumes.err)
	require.Equal(t, recovery.StateStarting, b.state(id))
}

// S-005.3: an agent that is still ending is looked at again until it is gone, and
// every wake begins another look.
func TestRun(t *testing.T) {
	b := newBench(t)
	pid, start, kill := child(t)
	ending := b.waiting(true, "gone", earlier, pid, start)
	b.resumes.running[b.starting(true)] = true // asked about in every look
	ctx, cancel := context.WithCancel(t.Context())
	wake, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx, wake)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	require.Eventually(t, b.resumes.askedTwice, waitFor, tick)
	require.Equal(t, recovery.StateWaitingForInput, b.state(ending))
	kill()
	interrupted := func(id string) func() bool {
		return func() bool { return b.state(id) == recovery.StateInterrupted }
	}
	require.Eventually(t, interrupted(ending), waitFor, tick)
	later := b.waiting(true, "gone", boot, pid, "another start")
	wake <- struct{}{}
	require.Eventually(t, interrupted(later), waitFor, tick)
}
