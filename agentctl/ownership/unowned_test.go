package ownership

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// O-003.8: exactly the handshake, a claim, a rotation and its replay renew;
// O-003.3: what fails shortens nothing.
func TestWhatRenews(t *testing.T) {
	a, clock := newAuthority()
	renews := func(what string, want bool, do func()) {
		clock.sleep(time.Second)
		do()
		require.Equal(t, want, a.renewed.Equal(clock.now), what)
	}
	var first, second wire.Issued
	renews("wrong nonce", false, func() { _, _ = a.Handshake("wrong") })
	renews("handshake", true, func() { first, _ = a.Handshake(nonce) })
	renews("claim", true, func() { require.NoError(t, a.Claim(first.Credential)) })
	renews("rotation", true, func() { second = rotate(t, a, first.Credential) })
	renews("replay", true, func() { rotate(t, a, first.Credential) })
	renews("superseded claim", false, func() { require.Error(t, a.Claim(first.Credential)) })
	renews("stranger", false, func() { require.Error(t, a.Claim("stranger")) })
	renews("confirm", false, func() { _, _ = a.Confirm(second.Credential, 2) })
	renews("check", false, func() { require.NoError(t, a.Check(second.Credential)) })
	renews("admission", false, func() {
		m, err := a.Admit(second.Credential, Request)
		require.NoError(t, err)
		m.Release()
	})
}

// O-003.3: a renewal keeps its reading of the monotonic clock, so that setting the
// wall clock neither ages nor rejuvenates it.
func TestAgeIsMonotonic(t *testing.T) {
	a := New(Config{Nonce: nonce, Period: period, Clock: time.Now})
	require.NotEqual(t, a.renewed.Round(0), a.renewed, "counted from the start")
	_, err := a.Handshake(nonce)
	require.NoError(t, err)
	require.NotEqual(t, a.renewed.Round(0), a.renewed, "renewed")
}

// O-003.1, O-003.2: unowned means an age of at least the period, counted from
// the start if nobody ever came (O-003.8).
func TestExpiry(t *testing.T) {
	a, clock := newAuthority()
	start := clock.now
	for clock.now.Before(start.Add(period)) {
		require.Empty(t, a.Reason(), "after %s", clock.now.Sub(start))
		wait := a.judge(clock.now)
		require.Positive(t, wait)
		require.LessOrEqual(t, wait, a.checkInterval())
		clock.sleep(wait)
	}
	a.judge(clock.now)
	require.Equal(t, ReasonUnowned, a.Reason())
	require.Equal(t, period, clock.now.Sub(start), "judged at the very moment")
}

// B-13: after a freeze longer than the period the owner has the time of one
// renewal, which is not itself a renewal.
func TestGraceAfterAFreeze(t *testing.T) {
	frozen := func() (*Authority, *fakeClock, string) {
		a, clock := newAuthority()
		issued, err := a.Handshake(nonce)
		require.NoError(t, err)
		due := clock.now.Add(a.judge(clock.now))
		clock.sleep(3 * period)
		require.Positive(t, a.judge(due))
		require.Empty(t, a.Reason())
		return a, clock, issued.Credential
	}
	t.Run("the owner comes back", func(t *testing.T) {
		a, clock, token := frozen()
		clock.sleep(a.RenewalInterval() - time.Second)
		require.NoError(t, a.Claim(token))
		clock.sleep(2 * time.Second)
		a.judge(clock.now)
		require.Empty(t, a.Reason())
	})
	t.Run("the owner does not", func(t *testing.T) {
		a, clock, _ := frozen()
		clock.sleep(a.RenewalInterval() - time.Second)
		a.judge(clock.now)
		require.Empty(t, a.Reason())
		clock.sleep(time.Second)
		a.judge(clock.now)
		require.Equal(t, ReasonUnowned, a.Reason())
	})
	t.Run("the grace does not postpone a later expiry", func(t *testing.T) {
		a, clock, token := frozen()
		require.NoError(t, a.Claim(token))
		clock.sleep(period)
		a.judge(clock.now)
		require.Equal(t, ReasonUnowned, a.Reason())
	})
}

// O-003.9: one way, with a distinct answer; a claim before the decision
// prevents it.
func TestShutdownIsOneWay(t *testing.T) {
	a, clock := newAuthority()
	issued, err := a.Handshake(nonce)
	require.NoError(t, err)
	clock.sleep(period)
	require.NoError(t, a.Claim(issued.Credential))
	a.judge(clock.now)
	require.Empty(t, a.Reason(), "the claim came first")

	clock.sleep(period)
	a.judge(clock.now)
	require.Equal(t, ReasonUnowned, a.Reason())
	requireCode(t, wire.CodeShuttingDown, a.Claim(issued.Credential))
	_, err = a.Rotate(t.Context(), issued.Credential)
	requireCode(t, wire.CodeShuttingDown, err)
	_, err = a.Confirm(issued.Credential, issued.RotationID)
	requireCode(t, wire.CodeShuttingDown, err)
	_, err = a.Admit(issued.Credential, Stream)
	requireCode(t, wire.CodeShuttingDown, err)
	require.NoError(t, a.Shutdown(issued.Credential), "already decided is success")
	a.ShutdownFor(ReasonSignal)
	require.Equal(t, ReasonUnowned, a.Reason(), "the first reason stands")

	fresh, _ := newAuthority()
	fresh.ShutdownFor(ReasonSignal)
	_, err = fresh.Handshake(nonce)
	requireCode(t, wire.CodeShuttingDown, err)
}

// O-003.1 to O-003.3: the watch ends an unowned server and no other, and is
// over when it has.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Config{Nonce: nonce, Period: time.Minute, Clock: time.Now})
		issued, err := a.Handshake(nonce)
		require.NoError(t, err)
		go a.Watch(t.Context())
		for range 10 {
			<-time.After(a.RenewalInterval())
			require.NoError(t, a.Claim(issued.Credential))
		}
		last := time.Now()
		<-a.ShuttingDown()
		require.Equal(t, ReasonUnowned, a.Reason())
		require.Equal(t, time.Minute, time.Since(last))
	})
	synctest.Test(t, func(t *testing.T) {
		a := New(Config{Nonce: nonce, Period: time.Minute, Clock: time.Now})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { a.Watch(ctx); close(ended) }()
		cancel()
		<-ended
		require.Empty(t, a.Reason())
	})
}

// B-13: the watch notices by itself that it did not run for a while.
func TestWatchAfterAFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frozen atomic.Int64
		clock := func() time.Time { return time.Now().Add(time.Duration(frozen.Load())) }
		a := New(Config{Nonce: nonce, Period: time.Minute, Clock: clock})
		go a.Watch(t.Context())
		<-time.After(time.Second)
		synctest.Wait()
		thawed := time.Now()
		frozen.Store(int64(time.Hour))
		<-time.After(a.checkInterval())
		synctest.Wait()
		require.Empty(t, a.Reason())
		<-a.ShuttingDown()
		grace := time.Since(thawed)
		require.GreaterOrEqual(t, grace, a.RenewalInterval())
		require.LessOrEqual(t, grace, a.RenewalInterval()+2*a.checkInterval())
	})
}
