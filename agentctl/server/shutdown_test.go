package server_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/ownership"
	"github.com/kandev/recovery/agentctl/server"
	"github.com/kandev/recovery/agentctl/wire"
)

// O-002.9: any acceptable credential ends everything; afterwards nothing
// listens and no agent is left.
func TestOwnershipShutdown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"newest", "superseded"} {
		t.Run(name, func(t *testing.T) {
			r := start(t, time.Now)
			owner, _ := r.own(t)
			agent := createReady(t, owner, "i", nil)
			driving := owner
			if name == "superseded" {
				issued, err := owner.Rotate(t.Context())
				require.NoError(t, err)
				driving = owner.WithCredential(issued.Credential)
			}
			stream := attach(t, driving, "i", 0)
			require.NoError(t, owner.Shutdown(t.Context()))
			require.ErrorIs(t, end(t, stream), client.ErrStopped)
			r.awaitEnd(t)
			require.NoError(t, r.err)
			require.False(t, alive(agent.PID))
			_, err := owner.Identity(t.Context())
			require.ErrorIs(t, err, client.ErrRefused)
		})
	}
}

// O-003.9: while the server shuts down, ownership operations get the distinct
// answer and a repeated shutdown is a success; the agents do end.
func TestShuttingDownIsToldApart(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	owner, first := r.own(t)
	agent := createReady(t, owner, "i", map[string]string{envLinger: "500ms"})
	r.authority.ShutdownFor(ownership.ReasonUnowned)

	_, err := owner.Claim(t.Context())
	requireCode(t, wire.CodeShuttingDown, err)
	_, err = owner.Rotate(t.Context())
	requireCode(t, wire.CodeShuttingDown, err)
	_, err = owner.Create(t.Context(), "j", agentRequest(t, nil))
	requireCode(t, wire.CodeShuttingDown, err)
	require.NoError(t, owner.Shutdown(t.Context()))
	_, err = owner.VerifyServer(t.Context(), home, identity, first, 1)
	require.NoError(t, err, "identity and proof are not ownership")

	r.awaitEnd(t)
	require.False(t, alive(agent.PID))
}

// heldStop keeps the instances from being stopped, and the server from ending,
// until it is let go.
type heldStop struct {
	server.Instances
	letGo chan struct{}
}

func (h heldStop) StopAll(ctx context.Context, grace time.Duration) error {
	<-h.letGo
	return h.Instances.StopAll(ctx, grace)
}

// startEnding starts a server that will decide to end and go on serving.
func startEnding(t *testing.T) *running {
	t.Helper()
	letGo := make(chan struct{})
	r := startWith(t, setup{wrap: func(i server.Instances) server.Instances { return heldStop{i, letGo} }})
	t.Cleanup(func() { close(letGo) })
	return r
}

// O-003.9: once the end is decided every operation of an owner gets the distinct
// answer, a handshake and the completion of an adoption among them. What needs
// no owner is served on, and asking for the end again is a success.
func TestEndingServerTakesNoOwner(t *testing.T) {
	t.Parallel()
	unowned := startEnding(t)
	unowned.authority.ShutdownFor(ownership.ReasonUnowned)
	_, err := unowned.client(t, "").Handshake(t.Context(), nonce)
	requireCode(t, wire.CodeShuttingDown, err)

	r := startEnding(t)
	owner, superseded := r.own(t)
	issued, err := owner.Rotate(t.Context())
	require.NoError(t, err)
	r.authority.ShutdownFor(ownership.ReasonUnowned)
	_, err = owner.Rotate(t.Context())
	requireCode(t, wire.CodeShuttingDown, err)
	_, err = owner.WithCredential(issued.Credential).Events(t.Context(), "i", 0)
	requireCode(t, wire.CodeShuttingDown, err)

	served := map[string]bool{
		"GET " + wire.RouteHealth: true, "GET " + wire.RouteIdentity: true, "POST " + wire.RouteShutdown: true,
	}
	judgedBefore := map[string]bool{ // by a nonce, a challenge and an upgrade, which this body has not
		"POST " + wire.RouteHandshake: true, "POST " + wire.RouteProve: true, "GET " + wire.RouteEvents: true,
	}
	raw := rawHTTP(t, r)
	for _, pattern := range r.Patterns() {
		if judgedBefore[pattern] {
			continue
		}
		want := wire.CodeShuttingDown
		if served[pattern] {
			want = ""
		}
		require.Equal(t, want, raw.send(t, pattern, "Bearer "+issued.Credential, `{"rotation_id":2}`), pattern)
	}
	_, err = owner.VerifyServer(t.Context(), home, identity, superseded, 1)
	require.NoError(t, err)
	require.Equal(t, ownership.ReasonUnowned, r.authority.Reason())
}

// O-003.1: nobody owns the server, and it ends itself with its agents.
func TestUnownedServerEndsItself(t *testing.T) {
	t.Parallel()
	r := startWith(t, setup{period: 400 * time.Millisecond, detached: true})
	owner, _ := r.own(t)
	created, err := owner.Create(t.Context(), "i", agentRequest(t, nil))
	require.NoError(t, err)
	r.awaitEnd(t)
	require.Equal(t, ownership.ReasonUnowned, r.authority.Reason())
	require.False(t, alive(created.PID))
}

// O-003.1, S-005.1: a server that ends with its backend does not end itself.
func TestBoundServerIsNotEndedForWantOfAnOwner(t *testing.T) {
	t.Parallel()
	const short = 100 * time.Millisecond
	bound := startWith(t, setup{period: short})
	detached := startWith(t, setup{period: short, detached: true})
	detached.awaitEnd(t)
	select {
	case <-bound.ended:
		t.Fatal("ended")
	case <-time.After(2 * short):
	}
	require.Empty(t, bound.authority.Reason())
}

// slowCreate delays every create until the instances are being stopped, or long
// enough for that to have begun.
type slowCreate struct {
	server.Instances
	entered  chan struct{}
	stopping chan struct{}
	once     sync.Once
}

func (s *slowCreate) Create(id string, request wire.CreateRequest) (wire.Instance, error) {
	close(s.entered)
	select {
	case <-s.stopping:
	case <-time.After(200 * time.Millisecond):
	}
	return s.Instances.Create(id, request)
}

func (s *slowCreate) StopAll(ctx context.Context, grace time.Duration) error {
	s.once.Do(func() { close(s.stopping) })
	return s.Instances.StopAll(ctx, grace)
}

// O-002.9: a create that was admitted before the decision is over before the
// instances are stopped, so that its agent does not stay.
func TestShutdownStopsWhatIsBeingCreated(t *testing.T) {
	t.Parallel()
	slow := &slowCreate{entered: make(chan struct{}), stopping: make(chan struct{})}
	r := startWith(t, setup{wrap: func(i server.Instances) server.Instances {
		slow.Instances = i
		return slow
	}})
	owner, _ := r.own(t)
	created := make(chan wire.Instance, 1)
	go func() {
		instance, _ := owner.Create(context.Background(), "i", agentRequest(t, nil))
		created <- instance
	}()
	<-slow.entered
	require.NoError(t, owner.Shutdown(t.Context()))
	r.awaitEnd(t)
	<-created
	require.Empty(t, r.supervisor.List())
}
