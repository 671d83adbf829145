package server_test

import (
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
)

// renewals drives a server whose clock stands still between two requests, so
// that each can be seen to renew or not.
type renewals struct {
	*running
	seconds atomic.Int64
	driven  map[string]bool
}

func watchRenewals(t *testing.T) *renewals {
	t.Helper()
	w := &renewals{driven: map[string]bool{}}
	w.running = start(t, func() time.Time { return time.Unix(w.seconds.Load(), 0) })
	return w
}

// expect makes one request of the route and checks whether it renewed.
func (w *renewals) expect(t *testing.T, renews bool, pattern string, request func()) {
	t.Helper()
	w.seconds.Add(1)
	request()
	require.Equal(t, renews, w.authority.SinceRenewal() == 0, pattern)
	w.driven[pattern] = true
}

// succeed expects a request that is served, and does not renew.
func (w *renewals) succeed(t *testing.T, pattern string, request func() error) {
	t.Helper()
	w.expect(t, false, pattern, func() { require.NoError(t, request(), pattern) })
}

// O-003.8: exactly handshake, claim and rotation, replays included, renew. Every
// route that the server has is served once over HTTPS to say so.
func TestWhatRenewsOverHTTP(t *testing.T) {
	t.Parallel()
	w := watchRenewals(t)
	ctx := t.Context()
	var owner *client.Client
	var first string
	w.expect(t, true, "POST "+wire.RouteHandshake, func() { owner, first = w.own(t) })
	w.succeed(t, "GET "+wire.RouteIdentity, func() error { _, err := owner.Identity(ctx); return err })
	w.succeed(t, "POST "+wire.RouteProve, func() error {
		_, err := owner.VerifyServer(ctx, home, identity, first, 1)
		return err
	})
	w.succeed(t, "GET "+wire.RouteDetails, func() error { _, err := owner.Details(ctx); return err })
	w.succeed(t, "GET "+wire.RouteMemory, func() error {
		memory, err := owner.Memory(ctx)
		require.NotZero(t, memory.LiveHeapBytes)
		require.NotZero(t, memory.Goroutines)
		return err
	})
	w.expect(t, false, "GET "+wire.RouteHealth, func() {
		require.Empty(t, rawHTTP(t, w.running).send(t, "GET "+wire.RouteHealth, "", ""))
	})
	w.expect(t, true, "POST "+wire.RouteClaim, func() {
		_, err := owner.Claim(ctx)
		require.NoError(t, err)
	})

	w.driveInstance(t, owner)
	w.driveTurns(t, owner)
	w.driveWorkspace(t, owner)
	w.succeed(t, "DELETE "+wire.RouteInstance, func() error { _, err := owner.Stop(ctx, "i", time.Second); return err })

	var issued wire.Issued
	for range 2 { // the second is a replay
		w.expect(t, true, "POST "+wire.RouteRotate, func() {
			var err error
			issued, err = owner.Rotate(ctx)
			require.NoError(t, err)
		})
	}
	adopter := owner.WithCredential(issued.Credential)
	w.succeed(t, "POST "+wire.RouteConfirm, func() error { _, err := adopter.Confirm(ctx, issued.RotationID); return err })
	w.succeed(t, "POST "+wire.RouteShutdown, func() error { return adopter.Shutdown(ctx) })

	for _, pattern := range w.Patterns() {
		require.True(t, w.driven[pattern], "%s was not driven", pattern)
	}
}

func (w *renewals) driveInstance(t *testing.T, owner *client.Client) {
	t.Helper()
	ctx := t.Context()
	request := agentRequest(t, nil)
	require.NoError(t, exec.CommandContext(ctx, "git", "init", "--quiet", request.Roots[0]).Run())
	w.succeed(t, "PUT "+wire.RouteInstance, func() error { _, err := owner.Create(ctx, "i", request); return err })
	require.Eventually(t, func() bool {
		var ready bool
		w.succeed(t, "GET "+wire.RouteStartup, func() error {
			startup, err := owner.Startup(ctx, "i")
			ready = startup.Phase == wire.PhaseReady
			return err
		})
		return ready
	}, deadline, 5*time.Millisecond)
	w.succeed(t, "GET "+wire.RouteInstances, func() error { _, err := owner.List(ctx); return err })
	w.succeed(t, "GET "+wire.RouteInstance, func() error { _, err := owner.Get(ctx, "i"); return err })
}

func (w *renewals) driveTurns(t *testing.T, owner *client.Client) {
	t.Helper()
	ctx := t.Context()
	var stream *client.EventStream
	w.expect(t, false, "GET "+wire.RouteEvents, func() { stream = attach(t, owner, "i", 0) })
	w.succeed(t, "PUT "+wire.RouteTurn, func() error { _, err := owner.Prompt(ctx, "i", "k", say("ask")); return err })
	asked := collect(t, stream, wire.EventPermissionRequest)
	w.succeed(t, "an acknowledgement", func() error { return stream.Ack(ctx, asked[len(asked)-1].Seq) })
	w.succeed(t, "POST "+wire.RoutePermission, func() error {
		return owner.AnswerPermission(ctx, "i", permissionID(t, asked), wire.PermissionAnswer{OptionID: "yes"})
	})
	collect(t, stream, wire.EventTurnEnded)

	var kept wire.KeptOutcome
	w.succeed(t, "GET "+wire.RouteTurnOutcome, func() error {
		var err error
		kept, err = owner.TurnOutcome(ctx, "i")
		return err
	})
	require.NotNil(t, kept.Outcome)
	w.succeed(t, "POST "+wire.RouteAckOutcome, func() error { return owner.AckTurnOutcome(ctx, "i", kept.Outcome.TurnID) })
	_, err := owner.Prompt(ctx, "i", "another", say("wait"))
	require.NoError(t, err)
	w.succeed(t, "POST "+wire.RouteCancel, func() error { return owner.Cancel(ctx, "i") })
}

func (w *renewals) driveWorkspace(t *testing.T, owner *client.Client) {
	t.Helper()
	ctx := t.Context()
	file := wire.Place{Path: "file"}
	w.succeed(t, "PUT "+wire.RouteFileContent, func() error {
		_, err := owner.WriteFile(ctx, "i", wire.WriteFile{Place: file, Content: []byte("x")})
		return err
	})
	w.succeed(t, "GET "+wire.RouteFileContent, func() error { _, err := owner.ReadFile(ctx, "i", file, 0, 0); return err })
	w.succeed(t, "GET "+wire.RouteFiles, func() error { _, err := owner.ListFiles(ctx, "i", wire.Place{}); return err })
	w.succeed(t, "GET "+wire.RouteGitStatus, func() error { _, err := owner.GitStatus(ctx, "i", 0); return err })
	w.succeed(t, "GET "+wire.RouteGitDiff, func() error { _, err := owner.GitDiff(ctx, "i", wire.Place{}, false); return err })
	w.succeed(t, "GET "+wire.RouteGitLog, func() error { _, err := owner.GitLog(ctx, "i", wire.Place{}, 0, 0); return err })
}

// O-003.3, O-003.8: what is refused renews nothing, and shortens nothing either.
func TestRefusedRequestsDoNotRenew(t *testing.T) {
	t.Parallel()
	w := watchRenewals(t)
	owner, first := w.own(t)
	second, err := owner.Rotate(t.Context())
	require.NoError(t, err)
	_, err = owner.WithCredential(second.Credential).Confirm(t.Context(), second.RotationID)
	require.NoError(t, err)
	renewed := w.seconds.Load()
	raw := rawHTTP(t, w.running)
	for _, pattern := range w.Patterns() {
		for _, credential := range []string{"", "Bearer stranger", "Bearer " + first} {
			for _, body := range []string{"", "{}", `{"nonce":"wrong"}`} {
				w.expect(t, false, pattern, func() { raw.do(t, pattern, credential, body) })
			}
		}
	}
	age := time.Duration(w.seconds.Load()-renewed) * time.Second
	require.Equal(t, age, w.authority.SinceRenewal())
}
