package owner_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/controltest"
	"github.com/kandev/recovery/internal/backend/owner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	waitFor = 10 * time.Second
	tick    = 5 * time.Millisecond
)

// own returns an owner that is closed with the test, and the reports of servers
// that were taken over.
func own(t *testing.T) (*owner.Owner, <-chan owner.Server) {
	t.Helper()
	superseded := make(chan owner.Server, 8)
	o := owner.New(owner.Config{
		Logger: zap.NewNop(), Clock: time.Now, CallTimeout: 5 * time.Second,
		Superseded: func(s owner.Server) { superseded <- s },
	})
	t.Cleanup(o.Close)
	return o, superseded
}

// renewedAgain waits until the ownership was renewed after now.
func renewedAgain(t *testing.T, o *owner.Owner) {
	t.Helper()
	_, before, err := o.LastRenewal()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, at, err := o.LastRenewal()
		return err == nil && at.After(before)
	}, waitFor, tick)
}

func TestNothingInUse(t *testing.T) {
	o, _ := own(t)
	_, _, err := o.Client()
	require.ErrorIs(t, err, owner.ErrNoServer)
	_, _, err = o.LastRenewal()
	require.ErrorIs(t, err, owner.ErrNoServer)
}

// O-003.2: the owner renews for as long as it lives, without being asked; a
// server whose period is watched stays.
func TestRenewsForLife(t *testing.T) {
	server := controltest.Start(t, 400*time.Millisecond)
	go server.Authority.Watch(t.Context())
	o, superseded := own(t)
	o.Use(server.Owner)
	c, used, err := o.Client()
	require.NoError(t, err)
	require.Equal(t, server.Owner, used)
	until := time.Now().Add(1200 * time.Millisecond)
	for time.Now().Before(until) {
		renewedAgain(t, o)
	}
	_, err = c.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, superseded)
	select {
	case <-server.Authority.ShuttingDown():
		t.Fatal("the server believes that it is unowned")
	default:
	}
	o.Close()
	_, _, err = o.Client()
	require.ErrorIs(t, err, owner.ErrNoServer)
	select {
	case <-server.Authority.ShuttingDown():
	case <-time.After(waitFor):
		t.Fatal("somebody still renews")
	}
}

// O-003.3: a failed renewal is tried again at the next tick, and does not end the
// use of the server.
func TestFailedRenewalIsTriedAgain(t *testing.T) {
	server := controltest.Start(t, 100*time.Millisecond)
	core, logged := observer.New(zap.WarnLevel)
	o := owner.New(owner.Config{
		Logger: zap.New(core), Clock: time.Now, CallTimeout: 5 * time.Second,
		Superseded: func(owner.Server) { t.Error("reported as taken over") },
	})
	t.Cleanup(o.Close)
	o.Use(server.Owner)
	renewedAgain(t, o)
	server.End()
	require.Eventually(t, func() bool { return logged.Len() >= 3 }, waitFor, tick)
	_, used, err := o.Client()
	require.NoError(t, err)
	require.Equal(t, server.Owner, used)
}

// O-002.3: once another backend has taken the server over, the renewal finds out,
// says so once, and asks no more.
func TestTakenOver(t *testing.T) {
	server := controltest.Start(t, 200*time.Millisecond)
	o, superseded := own(t)
	o.Use(server.Owner)
	server.TakeOver(t)
	select {
	case lost := <-superseded:
		require.Equal(t, server.Owner, lost)
	case <-time.After(waitFor):
		t.Fatal("not told")
	}
	_, _, err := o.Client()
	require.ErrorIs(t, err, owner.ErrNoServer)
	o.ReportSuperseded(server.Owner)
	o.Close()
	require.Empty(t, superseded)
}

// O-002.3: a report about an earlier tenure does not end a newer one.
func TestLateReportAboutEarlierCredential(t *testing.T) {
	server := controltest.Start(t, time.Hour)
	o, superseded := own(t)
	o.Use(server.Owner)
	next := server.TakeOver(t)
	o.Use(next)
	o.ReportSuperseded(server.Owner)
	c, used, err := o.Client()
	require.NoError(t, err)
	require.Equal(t, next, used)
	_, err = c.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, superseded)
}

// S-003.6: a server that is proven gone is out of use at once and without a word
// about another backend; a report about an earlier tenure changes nothing.
func TestReportGone(t *testing.T) {
	server := controltest.Start(t, time.Hour)
	o, superseded := own(t)
	o.Use(server.Owner)
	other := server.Owner
	other.Identity = "another"
	require.False(t, o.ReportGone(other))
	_, _, err := o.Client()
	require.NoError(t, err)
	require.True(t, o.ReportGone(server.Owner))
	_, _, err = o.Client()
	require.ErrorIs(t, err, owner.ErrNoServer)
	require.False(t, o.ReportGone(server.Owner))
	require.Empty(t, superseded)
}

// O-002.3: what a stranger to the server is told counts as superseded too; other
// refusals and silence do not.
func TestRejected(t *testing.T) {
	require.True(t, owner.Rejected(client.ErrSuperseded))
	require.True(t, owner.Rejected(&wire.Error{Code: wire.CodeUnauthenticated}))
	for _, err := range []error{nil, client.ErrNoAnswer, client.ErrRefused, &wire.Error{Code: wire.CodeShuttingDown}} {
		require.False(t, owner.Rejected(err))
	}
}

func TestUseAfterClose(t *testing.T) {
	server := controltest.Start(t, time.Hour)
	o, _ := own(t)
	o.Close()
	o.Use(server.Owner)
	_, _, err := o.Client()
	require.ErrorIs(t, err, owner.ErrNoServer)
}

// B-2: whoever kept the server alive is told before it comes into use, and is
// waited for.
func TestUseWaitsForWhoKeptItAlive(t *testing.T) {
	server := controltest.Start(t, time.Minute)
	var o *owner.Owner
	told := 0
	o = owner.New(owner.Config{
		Logger: zap.NewNop(), Clock: time.Now, CallTimeout: 5 * time.Second, Superseded: func(owner.Server) {},
		BeforeUse: func() {
			told++
			_, _, err := o.Client()
			require.ErrorIs(t, err, owner.ErrNoServer)
		},
	})
	t.Cleanup(o.Close)
	o.Use(server.Owner)
	require.Equal(t, 1, told)
	_, used, err := o.Client()
	require.NoError(t, err)
	require.Equal(t, server.Owner, used)
}
