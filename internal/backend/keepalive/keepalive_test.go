package keepalive_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/internal/backend/controltest"
	"github.com/kandev/recovery/internal/backend/keepalive"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/sealedcopy"
	"github.com/kandev/recovery/store/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	period  = 1200 * time.Millisecond
	waitFor = 10 * time.Second
	tick    = 5 * time.Millisecond
)

// kept is a keeper that ends with the test, its sealed copy and its log.
type kept struct {
	*keepalive.Keeper
	t    *testing.T
	copy *sealedcopy.File
	log  *observer.ObservedLogs
}

func keep(t *testing.T, held owner.Server) kept {
	t.Helper()
	key, err := seal.Open(t.TempDir())
	require.NoError(t, err)
	file := sealedcopy.In(t.TempDir(), key)
	require.NoError(t, file.Write(copyOf(held)))
	core, log := observer.New(zap.InfoLevel)
	k := keepalive.Start(keepalive.Config{
		Home: held.Home, Copy: file, Logger: zap.New(core), Clock: time.Now, CallTimeout: 5 * time.Second,
	})
	t.Cleanup(k.Stop)
	return kept{Keeper: k, t: t, copy: file, log: log}
}

func copyOf(s owner.Server) sealedcopy.Server {
	return sealedcopy.Server{
		Identity: s.Identity, Endpoint: s.Endpoint, Fingerprint: s.Fingerprint,
		RotationID: s.RotationID, Credential: s.Credential, UnownedPeriod: s.UnownedPeriod,
	}
}

// watches has the server judge from the first renewal on whether it is owned.
func (k kept) watches(server *controltest.Server) {
	k.t.Helper()
	require.Eventually(k.t, func() bool { _, ok := k.State(); return ok }, waitFor, tick)
	go server.Authority.Watch(k.t.Context())
}

// renewedFor waits while renewals go on for as long as given, and returns the
// last state.
func (k kept) renewedFor(d time.Duration) keepalive.State {
	k.t.Helper()
	var last keepalive.State
	for until := time.Now().Add(d); time.Now().Before(until); {
		before := last.LastRenewal
		require.Eventually(k.t, func() bool {
			var ok bool
			last, ok = k.State()
			return ok && last.LastRenewal.After(before)
		}, waitFor, tick)
	}
	return last
}

// givenUp waits until the log says that the server is left alone.
func (k kept) givenUp() {
	k.t.Helper()
	require.Eventually(k.t, func() bool { return k.log.FilterField(zap.Bool("left_alone", true)).Len() == 1 }, waitFor, tick)
	_, ok := k.State()
	require.False(k.t, ok)
}

func lives(t *testing.T, server *controltest.Server) {
	t.Helper()
	select {
	case <-server.Authority.ShuttingDown():
		t.Fatal("the server believes that it is unowned")
	default:
	}
}

// deadBoot rotates as a backend does that dies before it could store the answer.
func deadBoot(t *testing.T, server *controltest.Server) string {
	t.Helper()
	c := dial(server.Owner, server.Owner.Credential)
	defer c.Close()
	issued, err := c.Rotate(t.Context())
	require.NoError(t, err)
	return issued.Credential
}

func dial(s owner.Server, token string) *client.Client {
	return client.New(client.Config{Endpoint: s.Endpoint, Fingerprint: s.Fingerprint, Credential: token, HTTPTimeout: waitFor})
}

// B-2, O-003.2, O-003.8: a server is claimed from the sealed copy for as long as
// the keeper runs, and no longer; its credential is the same afterwards.
func TestClaimsWhatTheSealedCopyNames(t *testing.T) {
	t.Parallel()
	server := controltest.Start(t, period)
	k := keep(t, server.Owner)
	k.watches(server)
	state := k.renewedFor(2 * period)
	require.Equal(t, server.Owner.Identity, state.ServerIdentity)
	require.Equal(t, keepalive.ByClaim, state.Means)
	require.True(t, state.Since.Before(state.LastRenewal))
	lives(t, server)

	c := dial(server.Owner, server.Owner.Credential)
	defer c.Close()
	_, err := c.List(t.Context())
	require.NoError(t, err, "the credential still drives: nothing was rotated")

	k.Stop()
	k.Stop()
	_, ok := k.State()
	require.False(t, ok)
	select {
	case <-server.Authority.ShuttingDown():
	case <-time.After(waitFor):
		t.Fatal("somebody still renews")
	}
}

// B-2, O-002.10: where only the superseded credential is held, the rotation of
// the dead boot is replayed: the server lives on, the copy stays as it is, no
// further credential is issued, and an adoption gets the very rotation.
func TestASupersededCredentialRenewsByReplay(t *testing.T) {
	t.Parallel()
	server := controltest.Start(t, period)
	lost := deadBoot(t, server)
	k := keep(t, server.Owner)
	k.watches(server)
	require.Equal(t, keepalive.ByReplay, k.renewedFor(3*period).Means)
	lives(t, server)
	unchanged, err := k.copy.Read()
	require.NoError(t, err)
	require.Equal(t, copyOf(server.Owner), unchanged)

	// The adoption comes while the keeper still runs.
	adopted := server.TakeOver(t)
	require.Equal(t, lost, adopted.Credential)
	require.EqualValues(t, 2, adopted.RotationID)
	k.givenUp()
	c := dial(adopted, adopted.Credential)
	defer c.Close()
	_, err = c.List(t.Context())
	require.NoError(t, err)
	next, err := c.Rotate(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, next.RotationID)
}

// B-2, O-003.3: a server that gives no answer is asked again at every tick, and
// Stop does not wait for a peer that never answers.
func TestNoAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	server := controltest.Start(t, period)
	server.End()
	k := keep(t, server.Owner)
	require.Eventually(t, func() bool { return k.log.FilterField(zap.Bool("left_alone", false)).Len() >= 3 }, waitFor, tick)

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	held := server.Owner
	held.Endpoint, held.UnownedPeriod = silent.Addr().String(), time.Hour
	asking := keep(t, held)
	connection, err := silent.Accept()
	require.NoError(t, err)
	defer connection.Close()
	started := time.Now()
	asking.Stop()
	require.Less(t, time.Since(started), time.Second)
}

// B-2: what Postgres answers wins over the sealed copy; where it gives no
// answer the copy counts; and where it says that nothing is recorded, nobody is
// kept alive.
func TestPostgresWins(t *testing.T) {
	t.Parallel()
	copied, recorded := controltest.Start(t, period), controltest.Start(t, period)
	k := keep(t, copied.Owner)
	names := func(identity string) {
		t.Helper()
		require.Eventually(t, func() bool {
			state, _ := k.State()
			return state.ServerIdentity == identity
		}, waitFor, tick)
	}
	names(copied.Owner.Identity)
	k.Prefer(func(context.Context) (sealedcopy.Server, error) { return copyOf(recorded.Owner), nil })
	names(recorded.Owner.Identity)
	k.Prefer(func(context.Context) (sealedcopy.Server, error) { return sealedcopy.Server{}, errors.New("away") })
	names(copied.Owner.Identity)
	k.Prefer(func(context.Context) (sealedcopy.Server, error) { return sealedcopy.Server{}, keepalive.ErrNotRecorded })
	names("")
}
