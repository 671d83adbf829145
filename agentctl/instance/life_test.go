//go:build unix

package instance

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/acp"
	"github.com/kandev/recovery/agentctl/wire"
)

// B-6, B-9: an agent that dies in a turn is noticed although its child holds
// its output. Everything it said comes first, then the turn's end, then its
// own; nothing follows, and the child is gone.
func TestExitInATurn(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one")
	turn := a.prompt("k", "die 5")
	child := a.child()
	v := a.await(wire.InstanceExited)
	require.False(t, v.Alive())
	require.Zero(t, v.PID)
	requireGone(t, child)
	require.Equal(t, acp.ErrorAgentExited, a.awaitOutcome(turn.TurnID).Error)

	got := a.read(0, wire.EventAgentExited)
	var kinds []wire.EventKind
	for n, e := range got {
		require.Equal(t, int64(n+1), e.Seq)
		kinds = append(kinds, e.Kind)
	}
	require.Equal(t, []wire.EventKind{
		wire.EventTurnStarted, wire.EventUpdate, wire.EventTurnEnded, wire.EventAgentExited,
	}, kinds)
	var exited wire.AgentExited
	require.NoError(t, json.Unmarshal(got[3].Payload, &exited))
	require.Equal(t, wire.AgentExited{ExitCode: 5}, exited)

	stream, err := s.Attach("one", int64(len(got)))
	require.NoError(t, err)
	defer stream.Close()
	_, err = stream.Next(t.Context())
	require.ErrorIs(t, err, ErrFinished)
	_, err = s.Prompt("one", "k2", promptOf("say 1"))
	requireCode(t, wire.CodeNotReady, err)
	require.Equal(t, turn.TurnID, a.prompt("k", "die 5").TurnID, "a known key is answered in every state")
}

// An agent that closes its output is ended: nothing could be asked of it.
func TestClosedOutputIsTheEnd(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one")
	pid := a.view().PID
	turn := a.prompt("k", "close")
	a.await(wire.InstanceExited)
	requireGone(t, pid)
	require.Equal(t, acp.ErrorAgentExited, a.awaitOutcome(turn.TurnID).Error)
}

// S-001.5, S-001.6: without a stream production pauses at the limit, the
// agent's end included, and goes on after an attach without a loss.
func TestPausedAgentGoesOnAfterAttach(t *testing.T) {
	s := newTestSupervisor(t, func(c *Config) { c.EventLimit = 10 })
	a := started(t, s, "one")
	a.prompt("k", "say 50")
	eventually(t, func() bool { return a.view().LastSeq == 10 })
	require.NotEmpty(t, a.view().OpenTurnID)

	stream, err := s.Attach("one", 0)
	require.NoError(t, err)
	defer stream.Close()
	first, next := stream.Bounds()
	require.Equal(t, int64(1), first)
	require.GreaterOrEqual(t, next, int64(11))
	var got []wire.Event
	for len(got) < 52 {
		batch, err := stream.Next(t.Context())
		require.NoError(t, err)
		got = append(got, batch...)
		require.NoError(t, stream.Ack(got[len(got)-1].Seq))
	}
	require.Equal(t, wire.EventTurnEnded, got[51].Kind)
	require.Contains(t, string(got[50].Payload), `"50"`)

	_, err = s.Attach("one", 3)
	var gap *GapError
	require.ErrorAs(t, err, &gap)
}

// S-001.10, B-22: stopping frees a producer that is paused at the limit.
func TestStopWhilePaused(t *testing.T) {
	s := newTestSupervisor(t, func(c *Config) { c.EventLimit = 10 })
	a := started(t, s, "one")
	a.prompt("k", "say 20000")
	eventually(t, func() bool { return a.view().LastSeq == 10 })
	pid := a.view().PID
	a.stop(patience)
	requireGone(t, pid)
}

// B-22: a stop works during a start that never ends.
func TestStopDuringStart(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := describe(t, s, "one", "mute")
	pid := a.create().PID
	eventually(t, func() bool { return len(a.calls()) == 1 })
	a.stop(0)
	requireGone(t, pid)
}

// A stop ends a stream, tells the agent that outstanding requests are
// cancelled, and leaves a tombstone.
func TestStop(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one", "deaf")
	a.prompt("k", "ask")
	a.read(0, wire.EventPermissionRequest)
	stream, err := s.Attach("one", 0)
	require.NoError(t, err)
	a.stop(time.Second)
	<-stream.Done()
	require.ErrorIs(t, stream.Err(), ErrStopped)
	heard, err := os.ReadFile(filepath.Join(a.dir, "heard"))
	require.NoError(t, err)
	require.Contains(t, string(heard), `"outcome":"cancelled"`)
	require.Empty(t, s.List())
	_, err = s.Create("one", a.request)
	requireCode(t, wire.CodeStopped, err)

	absent, err := s.Stop(t.Context(), "one", 0)
	require.NoError(t, err)
	require.True(t, absent, "already absent is success")
}

// The stop of an unknown id keeps a create that comes later from acting (W-7).
func TestStopOfAnUnknownID(t *testing.T) {
	s := newTestSupervisor(t, nil)
	absent, err := s.Stop(t.Context(), "late", 0)
	require.NoError(t, err)
	require.True(t, absent)
	_, err = s.Create("late", describe(t, s, "late").request)
	requireCode(t, wire.CodeStopped, err)
}

// B-22: repeated stops join the first and do not escalate it: its grace counts.
func TestStopIsJoined(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one", "deaf")
	const grace = 500 * time.Millisecond
	began := time.Now()
	var wg sync.WaitGroup
	var first error
	wg.Go(func() { _, first = s.Stop(t.Context(), "one", grace) })
	a.await(wire.InstanceStopping)
	errs := make([]error, 8)
	for n := range errs {
		wg.Go(func() { _, errs[n] = s.Stop(t.Context(), "one", 0) })
	}
	wg.Wait()
	require.GreaterOrEqual(t, time.Since(began), grace)
	for _, err := range append(errs, first) {
		require.NoError(t, err)
	}
	require.Empty(t, s.List())
}

// A caller that leaves does not end the stop.
func TestStopGoesOnWithoutItsCaller(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one", "deaf")
	pid := a.view().PID
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Stop(ctx, "one", 50*time.Millisecond)
	requireCode(t, wire.CodeStopFailed, err)
	eventually(t, func() bool { return len(s.List()) == 0 })
	requireGone(t, pid)
}

// B-6, B-22: a stop that leaves a process fails, names it, keeps the instance
// listed as stopping, and can be repeated.
func TestFailedStopIsKept(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one", "deaf")
	pid := a.view().PID
	s.killWait = 50*time.Millisecond - patience // ends within the grace
	_, err := s.Stop(t.Context(), "one", patience)
	requireCode(t, wire.CodeStopFailed, err)
	require.ErrorContains(t, err, "survived")
	v := a.view()
	require.Equal(t, wire.InstanceStopping, v.State)
	require.Equal(t, pid, v.PID)
	_, err = s.Prompt("one", "k", promptOf("say 1"))
	requireCode(t, wire.CodeNotReady, err)

	s.killWait = defaultKillWait
	a.stop(0)
	requireGone(t, pid)
	require.Empty(t, s.List())
}

// S-001.1: every instance is stopped, at once rather than one after another.
func TestStopAll(t *testing.T) {
	s := newTestSupervisor(t, nil)
	for _, id := range []string{"one", "two", "three"} {
		started(t, s, id, "deaf")
	}
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { err = s.StopAll(t.Context(), time.Second) })
	eventually(t, func() bool {
		stopping := 0
		for _, v := range s.List() {
			if v.State == wire.InstanceStopping {
				stopping++
			}
		}
		return stopping == 3
	})
	wg.Wait()
	require.NoError(t, err)
	require.Empty(t, s.List())
}

// A stop's grace is its whole tree's, also if the agent itself ends at once.
func TestStopGivesChildrenTheGrace(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one")
	a.awaitOutcome(a.prompt("k", "spawn").TurnID)
	child := a.child()
	const grace = leftoverGrace + 500*time.Millisecond
	began := time.Now()
	a.stop(grace)
	require.GreaterOrEqual(t, time.Since(began), grace)
	requireGone(t, child)
}

// Idle reaping spares an open turn and recent activity, that of the agent
// itself included.
func TestIdleInstancesAreStopped(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	advance := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
	s := newTestSupervisor(t, func(c *Config) {
		c.IdleTimeout = time.Hour
		c.Clock = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
	})
	idle, busy, recent := started(t, s, "idle"), started(t, s, "busy"), started(t, s, "recent")
	talks := started(t, s, "talks")
	talks.awaitOutcome(talks.prompt("k", "later").TurnID)
	busy.prompt("k", "hang")
	eventually(t, func() bool { return busy.view().LastSeq == 1 })
	advance(59 * time.Minute)
	s.stopIdle()
	require.Len(t, s.List(), 4)
	require.NoError(t, os.WriteFile(filepath.Join(talks.dir, "go"), nil, 0o600))
	eventually(t, func() bool { return talks.view().LastSeq == 3 })
	recent.awaitOutcome(recent.prompt("k", "say 1").TurnID)
	advance(time.Minute)
	s.stopIdle()
	eventually(t, func() bool { return len(s.List()) == 3 })
	_, err := s.Create("idle", idle.request)
	requireCode(t, wire.CodeStopped, err)
	require.Equal(t, wire.InstanceReady, busy.view().State)
	require.Equal(t, wire.InstanceReady, recent.view().State)
	require.Equal(t, wire.InstanceReady, talks.view().State)
}

// The watch looks by itself.
func TestIdleWatch(t *testing.T) {
	s := newTestSupervisor(t, func(c *Config) { c.IdleTimeout = 50 * time.Millisecond })
	describe(t, s, "one").create()
	eventually(t, func() bool { return len(s.List()) == 0 })
}

// Every verb tells an unknown instance by the same code.
func TestUnknownInstance(t *testing.T) {
	s := newTestSupervisor(t, nil)
	for name, call := range map[string]func() error{
		"get":        func() error { _, err := s.Get("x"); return err },
		"startup":    func() error { _, err := s.Startup("x"); return err },
		"prompt":     func() error { _, err := s.Prompt("x", "k", promptOf("say 1")); return err },
		"cancel":     func() error { return s.Cancel("x") },
		"permission": func() error { return s.AnswerPermission("x", "r", wire.PermissionAnswer{Cancelled: true}) },
		"outcome":    func() error { _, err := s.TurnOutcome("x"); return err },
		"ack":        func() error { return s.AckTurnOutcome("x", "t") },
		"attach":     func() error { _, err := s.Attach("x", 0); return err },
	} {
		require.ErrorIs(t, call(), &wire.Error{Code: wire.CodeNotFound}, name)
	}
}
