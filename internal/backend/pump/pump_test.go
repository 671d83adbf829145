package pump_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/controltest"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// S-001.5, B-1: what was produced while detached and what comes later is committed
// in order, once, and acknowledged.
func TestEventsAreCommittedThenAcknowledged(t *testing.T) {
	b := setUp(t)
	b.update(t, 50)
	b.pumps.Start(b.session, instance)
	b.committed(t, 50)
	b.update(t, 150)
	inOrder(t, b.committed(t, 200))
	b.acknowledged(t, 200)
}

// B-1: a batch whose commit succeeded without anybody learning of it is committed
// again, and is there once.
func TestUnknownOutcomeOfACommit(t *testing.T) {
	b := setUp(t)
	lost := 0
	b.journal.intercept(func(ctx context.Context, batch store.Batch) (int64, error) {
		committed, err := b.Store.CommitEvents(ctx, batch)
		if lost < 2 {
			lost++
			return 0, store.ErrUnavailable
		}
		return committed, err
	})
	b.update(t, 20)
	b.pumps.Start(b.session, instance)
	b.acknowledged(t, 20)
	inOrder(t, b.committed(t, 20))
}

// B-1: sessions share commits of which nobody ever learns whether they took place.
// Each session goes on alone, and has every event once.
func TestUnknownOutcomeOfSharedCommits(t *testing.T) {
	b := setUp(t)
	wrote := 0
	b.journal.shared = func(ctx context.Context, batches []store.Batch) ([]bool, error) {
		b.journal.mu.Lock()
		defer b.journal.mu.Unlock()
		appended, err := b.Store.AppendTogether(ctx, batches)
		if err == nil && slices.Contains(appended, true) {
			wrote++
		}
		return nil, store.ErrUnavailable
	}
	sessions := map[string]*controltest.Agent{}
	for i := range 5 {
		session, agent := b.newSession(t), fmt.Sprintf("agent-%d", i)
		sessions[session] = b.server.Add(agent, 100)
		b.pumps.Start(session, agent)
		sessions[session].Append(t, wire.EventUpdate, "", "the first goes alone")
	}
	committed := func(n int64) {
		for _, agent := range sessions {
			require.Eventually(t, func() bool { first, _ := agent.Log.Bounds(); return first == n+1 }, waitFor, tick)
		}
	}
	committed(1)
	for range 19 {
		for _, agent := range sessions {
			agent.Append(t, wire.EventUpdate, "", "said")
		}
	}
	committed(20)
	for session := range sessions {
		events, err := b.EventsAfter(t.Context(), inst, session, 0, 1000)
		require.NoError(t, err)
		require.Len(t, events, 20)
		inOrder(t, events)
	}
	require.Positive(t, wrote)
}

// The end of all pumps waits for what they have under way together, so that its
// journal may be closed.
func TestStopAllWaitsForSharedCommits(t *testing.T) {
	b := setUp(t)
	entered, ended := make(chan struct{}), false
	b.journal.shared = func(ctx context.Context, _ []store.Batch) ([]bool, error) {
		close(entered)
		<-ctx.Done()
		err := b.Ping(context.Background())
		ended = true
		return []bool{false}, err
	}
	b.update(t, 1)
	b.pumps.Start(b.session, instance)
	receive(t, entered)
	b.pumps.StopAll()
	require.True(t, ended)
}

// B-1: while Postgres does not answer, nothing is acknowledged, so nothing is
// dropped, and the very same batch is tried until it is committed.
func TestOutageOfPostgres(t *testing.T) {
	b := setUp(t)
	b.journal.intercept(func(context.Context, store.Batch) (int64, error) { return 0, store.ErrUnavailable })
	b.update(t, 20)
	b.pumps.Start(b.session, instance)
	require.Eventually(t, func() bool { return len(b.journal.asked()) >= 5 }, waitFor, tick)
	first, _ := b.agent.Log.Bounds()
	require.EqualValues(t, 1, first)
	asked := b.journal.asked()
	for _, batch := range asked {
		require.Equal(t, asked[0], batch)
	}
	b.journal.intercept(nil)
	b.acknowledged(t, 20)
	inOrder(t, b.committed(t, 20))
}

// B-1: a pump that goes on where another backend's ended begins after the last
// committed event.
func TestGoesOnAfterTheCursor(t *testing.T) {
	b := setUp(t)
	b.update(t, 10)
	b.pumps.Start(b.session, instance)
	b.committed(t, 10)
	b.pumps.Stop(b.session)
	b.detached(t)
	b.update(t, 10)
	b.pumps.Start(b.session, instance)
	inOrder(t, b.committed(t, 20))
	b.acknowledged(t, 20)
}

// A batch that turns out not to be the next one makes the pump attach again at the
// cursor.
func TestAttachesAgainAtTheCursor(t *testing.T) {
	b := setUp(t)
	refused := false
	b.journal.intercept(func(ctx context.Context, batch store.Batch) (int64, error) {
		if !refused {
			refused = true
			return 0, store.ErrEventGap
		}
		return b.Store.CommitEvents(ctx, batch)
	})
	b.update(t, 10)
	b.pumps.Start(b.session, instance)
	inOrder(t, b.committed(t, 10))
}

// S-004.3, S-004.4: the end of a turn is applied with its event, once, and opens
// the session for the next prompt.
func TestTurnEnds(t *testing.T) {
	b := setUp(t)
	ctx := t.Context()
	_, _, err := b.RecordTurn(ctx, inst, b.session, "key", []byte(`[]`), boot)
	require.NoError(t, err)
	b.agent.Append(t, wire.EventTurnStarted, "t-1", wire.TurnStarted{Key: "key"})
	b.update(t, 1)
	b.pumps.Start(b.session, instance)
	b.committed(t, 2)
	turn, err := b.OpenTurn(ctx, inst, b.session)
	require.NoError(t, err)
	require.Equal(t, "t-1", turn.TurnID)
	require.Equal(t, recovery.TurnOpen, turn.State)

	b.agent.Append(t, wire.EventTurnEnded, "t-1", wire.TurnOutcome{
		TurnID: "t-1", Key: "key", StopReason: "end_turn", EndedAt: time.Now(),
	})
	b.committed(t, 3)
	turn, err = b.LastTurn(ctx, inst, b.session)
	require.NoError(t, err)
	require.Equal(t, recovery.TurnEnded, turn.State)
	require.Equal(t, "end_turn", turn.StopReason)
	session, err := b.GetSession(ctx, inst, b.session)
	require.NoError(t, err)
	require.Equal(t, recovery.StateWaitingForInput, session.State)
	require.Equal(t, recovery.TaskReview, session.TaskState)
}

// A reader is woken after the commit, misses no change, and costs nothing once it
// is gone.
func TestNotifier(t *testing.T) {
	b := setUp(t)
	wake, unsubscribe := b.changes.Subscribe(b.session)
	elsewhere, done := b.changes.Subscribe("other")
	b.update(t, 1)
	b.pumps.Start(b.session, instance)
	receive(t, wake)
	b.committed(t, 1)
	require.Empty(t, elsewhere)
	b.changes.Changed(b.session)
	b.changes.Changed(b.session)
	receive(t, wake)
	require.Empty(t, wake, "one wake-up stands for all before it")
	unsubscribe()
	b.changes.Changed(b.session)
	require.Empty(t, wake)
	done()
}

// S-001.9: while a commit waits, everything that the window allows is taken off
// the connection, so that the pump is no stalled reader, and is the next commit.
func TestReadsAheadOfACommit(t *testing.T) {
	b := setUp(t)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	b.journal.intercept(func(ctx context.Context, batch store.Batch) (int64, error) {
		b.journal.intercept(nil)
		entered <- struct{}{}
		<-release
		return b.Store.CommitEvents(ctx, batch)
	})
	b.update(t, 1)
	b.pumps.Start(b.session, instance)
	receive(t, entered)
	for range 50 {
		b.update(t, 1)
	}
	last := make(chan int64, 1)
	last <- 51
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	require.False(t, b.agent.Log.Stalled(ctx, time.Hour, last))
	require.NoError(t, ctx.Err(), "the events were not taken")
	require.Len(t, b.journal.asked(), 1)
	close(release)
	inOrder(t, b.committed(t, 51))
	b.acknowledged(t, 51)
	asked := b.journal.asked()
	require.Len(t, asked, 2)
	require.Len(t, asked[1].Events, 50)
}
