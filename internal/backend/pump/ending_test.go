package pump_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/controltest"
	"github.com/kandev/recovery/internal/backend/pump"
	"github.com/kandev/recovery/store"
)

// B-1: when a newer stream wins, the pump ends and neither fights for the stream
// nor settles the session.
func TestNewerStreamWins(t *testing.T) {
	b := setUp(t)
	b.update(t, 1)
	b.pumps.Start(b.session, instance)
	b.committed(t, 1)
	c, _, err := b.owner.Client()
	require.NoError(t, err)
	newer, err := c.Events(t.Context(), instance, 1)
	require.NoError(t, err)
	b.update(t, 1)
	events, err := newer.Next(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, events[0].Seq)
	b.pumps.StopAll()
	require.True(t, b.agent.Log.Attached())
	require.NoError(t, newer.Close())
	require.Empty(t, b.endings)
	b.committed(t, 1)
}

// B-1: a newer stream that comes during a commit wins, too, although the pump
// learns of it by an acknowledgement that fails.
func TestNewerStreamDuringACommit(t *testing.T) {
	b := setUp(t)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	b.journal.intercept(func(ctx context.Context, batch store.Batch) (int64, error) {
		entered <- struct{}{}
		<-release
		return b.Store.CommitEvents(ctx, batch)
	})
	b.update(t, 1)
	b.pumps.Start(b.session, instance)
	receive(t, entered)
	c, _, err := b.owner.Client()
	require.NoError(t, err)
	newer, err := c.Events(t.Context(), instance, 0)
	require.NoError(t, err)
	close(release)
	b.committed(t, 1)
	for n := int64(1); n <= 20; n++ {
		events, err := newer.Next(t.Context())
		require.NoError(t, err, "the pump came back")
		require.Equal(t, n, events[0].Seq)
		require.NoError(t, newer.Ack(t.Context(), n))
		b.acknowledged(t, n)
		b.update(t, 1)
	}
	require.NoError(t, newer.Close())
	require.Empty(t, b.endings)
}

// O-002.3: a pump whose credential was superseded reports it and ends.
func TestSuperseded(t *testing.T) {
	b := setUp(t)
	b.update(t, 1)
	b.pumps.Start(b.session, instance)
	b.committed(t, 1)
	b.server.TakeOver(t)
	require.Equal(t, b.server.Owner, receive(t, b.superseded))
	b.update(t, 1)
	b.pumps.Stop(b.session)
	b.committed(t, 1)
	require.Empty(t, b.endings)
}

// O-002.3: when this boot itself adopted the server again, its pumps go on under
// the newer credential.
func TestAdoptedAgain(t *testing.T) {
	b := setUp(t)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	b.journal.intercept(func(ctx context.Context, batch store.Batch) (int64, error) {
		entered <- struct{}{}
		<-release
		b.journal.intercept(nil)
		return b.Store.CommitEvents(ctx, batch)
	})
	b.update(t, 1)
	b.pumps.Start(b.session, instance)
	receive(t, entered)
	b.owner.Use(b.server.TakeOver(t))
	close(release)
	b.committed(t, 1)
	b.update(t, 1)
	inOrder(t, b.committed(t, 2))
	require.Empty(t, b.superseded)
}

// What another server says of the instance means nothing: an instance that it does
// not know has not ended.
func TestOtherServerInUse(t *testing.T) {
	b := setUp(t)
	other := controltest.Start(t, time.Hour)
	changed := make(chan struct{})
	b.journal.intercept(func(context.Context, store.Batch) (int64, error) {
		b.owner.Use(other.Owner)
		close(changed)
		return 0, store.ErrEventGap
	})
	b.update(t, 1)
	b.pumps.Start(b.session, instance)
	receive(t, changed)
	b.detached(t)
	require.Never(t, func() bool { return len(b.endings) > 0 }, 50*time.Millisecond, tick)
}

// S-001.10, S-003: the end of an agent settles its session after all of its events
// are committed, once, however often settling has to be tried.
func TestAgentExits(t *testing.T) {
	b := setUp(t)
	refusals := 3
	b.refuseEnd = func() error {
		if refusals--; refusals >= 0 {
			return store.ErrUnavailable
		}
		return nil
	}
	b.update(t, 5)
	b.pumps.Start(b.session, instance)
	b.agent.Append(t, wire.EventAgentExited, "", wire.AgentExited{ExitCode: 3})
	b.agent.Log.Finish()
	ending := receive(t, b.endings)
	require.Equal(t, pump.Ending{SessionID: b.session, InstanceID: instance, Exit: &wire.AgentExited{ExitCode: 3}}, ending)
	b.committed(t, 6)
	b.pumps.StopAll()
	require.Empty(t, b.endings)
}

// An instance that was stopped, or that its server does not know, has ended.
func TestInstanceIsGone(t *testing.T) {
	for name, remove := range map[string]func(b *bench){
		"stopped": func(b *bench) { b.agent.Log.Close() },
		"unknown": func(b *bench) { b.server.Remove(instance) },
	} {
		t.Run(name, func(t *testing.T) {
			b := setUp(t)
			remove(b)
			b.pumps.Start(b.session, instance)
			require.Equal(t, pump.Ending{SessionID: b.session, InstanceID: instance}, receive(t, b.endings))
		})
	}
}

// The end of a session may start its next pump, and shutting down does not wait for
// a settling that cannot succeed.
func TestSettlingMayStartAndIsInterruptible(t *testing.T) {
	b := setUp(t)
	asked := make(chan struct{})
	b.refuseEnd = sync.OnceValue(func() error {
		b.pumps.Stop(b.session)
		close(asked)
		return errors.New("never")
	})
	b.agent.Log.Close()
	b.pumps.Start(b.session, instance)
	receive(t, asked)
	next := b.server.Add("instance-2", 100)
	b.pumps.Start(b.session, "instance-2")
	next.Append(t, wire.EventUpdate, "", nil)
	b.committed(t, 1)
	b.pumps.StopAll()
	require.Empty(t, b.endings)
}

// B-1: events that the server does not keep any more are marked as a gap, and the
// transcript goes on behind it.
func TestGapIsMarked(t *testing.T) {
	b := setUp(t)
	b.update(t, 5)
	c, _, err := b.owner.Client()
	require.NoError(t, err)
	stray, err := c.Events(t.Context(), instance, 0)
	require.NoError(t, err)
	_, err = stray.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, stray.Ack(t.Context(), 3))
	b.acknowledged(t, 3)
	require.NoError(t, stray.Close())

	b.pumps.Start(b.session, instance)
	events := b.committed(t, 3)
	require.Equal(t, store.EventKindGap, events[0].Kind)
	require.JSONEq(t, `{"first":1,"last":3}`, string(events[0].Payload))
	require.EqualValues(t, 4, events[1].Seq)
	require.EqualValues(t, 5, events[2].Seq)
}

// A cursor beyond what the server ever produced ends the pump: nothing that it
// could commit would be true.
func TestCursorBeyondTheServer(t *testing.T) {
	b := setUp(t)
	b.update(t, 5)
	b.pumps.Start(b.session, instance)
	b.acknowledged(t, 5)
	b.pumps.Stop(b.session)
	b.agent = b.server.Add(instance, 100)
	b.update(t, 2)
	b.pumps.Start(b.session, instance)
	b.update(t, 20)
	b.pumps.StopAll()
	b.committed(t, 5)
	require.Empty(t, b.endings)
}

// One pump per session: the same again changes nothing, another instance replaces
// it, and after the end nothing starts.
func TestOnePumpPerSession(t *testing.T) {
	b := setUp(t)
	b.update(t, 1)
	b.pumps.Start(b.session, instance)
	b.committed(t, 1)
	b.pumps.Start(b.session, instance)
	b.update(t, 1)
	b.committed(t, 2)

	second := b.server.Add("instance-2", 100)
	b.pumps.Start(b.session, "instance-2")
	second.Append(t, wire.EventUpdate, "", nil)
	events := b.committed(t, 3)
	require.Equal(t, "instance-2", events[2].InstanceID)
	require.EqualValues(t, 3, events[2].Position)
	b.detached(t)

	b.pumps.StopAll()
	require.Eventually(t, func() bool { return !second.Log.Attached() }, waitFor, tick)
	b.pumps.Start(b.session, instance)
	b.pumps.Stop(b.session)
	b.detached(t)
}

// S-002.11: a session that cannot be committed holds up no other.
func TestSessionsDoNotHoldEachOtherUp(t *testing.T) {
	b := setUp(t)
	b.journal.intercept(func(ctx context.Context, batch store.Batch) (int64, error) {
		if batch.SessionID == b.session {
			return 0, store.ErrUnavailable
		}
		return b.Store.CommitEvents(ctx, batch)
	})
	stuck := b.session
	b.update(t, 1)
	b.pumps.Start(stuck, instance)
	other := b.newSession(t)
	agent := b.server.Add("instance-2", 100)
	agent.Append(t, wire.EventUpdate, "", nil)
	b.pumps.Start(other, "instance-2")
	require.Eventually(t, func() bool {
		n, err := b.CountEvents(t.Context(), inst, other)
		return err == nil && n == 1
	}, waitFor, tick)
	n, err := b.CountEvents(t.Context(), inst, stuck)
	require.NoError(t, err)
	require.Zero(t, n)
}
