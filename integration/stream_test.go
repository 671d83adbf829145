package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// seeds returns where n random runs of a test begin. RECOVERY_SEED repeats one.
func seeds(t *testing.T, n int) []uint64 {
	t.Helper()
	if given := os.Getenv("RECOVERY_SEED"); given != "" {
		seed, err := strconv.ParseUint(given, 10, 64)
		require.NoError(t, err, "RECOVERY_SEED")
		return []uint64{seed}
	}
	var drawn []uint64
	for range n {
		drawn = append(drawn, rand.Uint64())
	}
	return drawn
}

// strike is one kill of a backend: while it recovers, after a part of the time
// that a recovery took, or once so many more events are committed.
type strike struct {
	recovering bool
	part       float64
	further    int64
}

// strikes draws n of them, within a stream of so many events. The first one comes
// upon a backend that serves.
func strikes(seed uint64, n int, events int64) []strike {
	random := rand.New(rand.NewPCG(seed, seed))
	all := make([]strike, n)
	for i := range all {
		all[i] = strike{
			recovering: i > 0 && random.IntN(3) == 0,
			part:       random.Float64(), further: 1 + random.Int64N(events/int64(n+1)),
		}
	}
	return all
}

// B-1, B-9, S-001.2, S-001.5, S-004.4: backends die at random points of a stream
// of 5,000 updates, some of them while they recover. The transcript is what the
// agent said, nothing missing, doubled or out of order, and its turn ended once.
func TestAStreamGoesThroughKills(t *testing.T) {
	t.Parallel()
	kills, runs := 3, 1
	if long() {
		kills, runs = 10, 5
	}
	for _, seed := range seeds(t, runs) {
		t.Run(fmt.Sprintf("RECOVERY_SEED=%d", seed), func(t *testing.T) { streamsThrough(t, seed, kills) })
	}
}

func streamsThrough(t *testing.T, seed uint64, kills int) {
	const updates = 5000
	w := newWorld(t)
	began := time.Now()
	w.start().serving()
	recovers := time.Since(began)
	a, db := w.agent("streams"), w.store()
	committed := func() int64 {
		session, err := db.GetSession(t.Context(), w.backend.status.Installation, a.session)
		require.NoError(t, err)
		return session.Position
	}
	a.prompt("one", fmt.Sprintf("stream %d every 300us", updates))
	for _, s := range strikes(seed, kills, updates) {
		if s.recovering {
			w.passes(time.Duration(s.part * float64(recovers)))
		} else {
			until := min(committed()+s.further, updates)
			w.eventually(fmt.Sprintf("%d events are committed", until), func() bool { return committed() >= until })
		}
		w.backend.kill()
		t.Logf("killed after event %d", committed())
		w.start()
	}
	w.backend.serving()
	a.committedExactly(updates + 2) // and the turn's beginning and end
	a.undisturbed()
}

// committedExactly waits for so many events and checks that they are all there
// are and what the agent produced, in order, and that each turn was ended once.
func (a *agent) committedExactly(n int64) {
	t := a.w.t
	t.Helper()
	a.await(fmt.Sprintf("has its %d events", n), func(s userapi.Session) bool {
		return s.Position >= n && s.State == recovery.StateWaitingForInput
	})
	events := a.transcript()
	require.Len(t, events, int(n))
	a.matches(events)
	require.Equal(t, a.produced().Ends, a.turnsEnded())
}

// turnsEnded counts how often the end of a turn was applied to the session.
func (a *agent) turnsEnded() int {
	a.w.t.Helper()
	n := 0
	for _, transition := range a.transitions("") {
		if strings.HasPrefix(transition, string(recovery.StateRunning+">"+recovery.StateWaitingForInput)) {
			n++
		}
	}
	return n
}

// pauses waits until the agent has produced more than so many updates and nothing
// that it says is taken any more, while its complaints on standard error still are.
func (a *agent) pauses(beyond int) {
	a.w.t.Helper()
	a.w.eventually("agent "+a.session+" pauses", func() bool {
		before, complaints := a.produced(), a.calls(fakeagent.MethodComplaint)
		a.w.eventually("it complains on", func() bool { return a.calls(fakeagent.MethodComplaint) >= complaints+4 })
		return before.Updates > beyond && a.produced() == before
	})
}
