//go:build unix

package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/credential"
	"github.com/kandev/recovery/internal/stack/faultproxy"
	"github.com/kandev/recovery/store"
)

// cutsWanted is how many connections die under a writer of each kind of fault.
func cutsWanted() int {
	if os.Getenv("RECOVERY_LONG") == "1" {
		return 1000
	}
	return 8
}

// drawn returns the seed of a test, which RECOVERY_SEED repeats.
func drawn(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if given := os.Getenv("RECOVERY_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err, "RECOVERY_SEED")
	}
	t.Logf("RECOVERY_SEED=%d", seed)
	return seed
}

// B-1, S-004.4, S-004.6: connections die before a COMMIT reaches the server, while
// nobody knows about it, after it took effect and before its answer is through, or
// between any two bytes. Whoever repeats a batch until it is answered ends up with
// every event in exactly one row, in order, and every turn ended once. Each error
// says that it is not known what the server did.
func TestCommitsThroughConnectionsThatDie(t *testing.T) {
	seed := drawn(t)
	for _, c := range []struct {
		kind   faultproxy.Kind
		within int // commits, or bytes, that a connection lives for at most
	}{
		{faultproxy.BeforeCommit, 5},
		{faultproxy.AtCommit, 5},
		{faultproxy.AfterCommit, 5},
		{faultproxy.ToServer, 20_000},
		{faultproxy.ToClient, 6_000},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			w := newRepeater(setup(t), rand.New(rand.NewPCG(seed, 0)))
			random := rand.New(rand.NewPCG(seed, 1)) // of the proxy's goroutine
			w.proxy.Use(func() faultproxy.Fault {
				return faultproxy.Fault{Kind: c.kind, After: random.IntN(c.within)}
			})
			for w.proxy.Made()[c.kind] < cutsWanted() {
				w.turn()
			}
			w.proxy.Use(nil)
			w.turn()
			w.check()
		})
	}
}

// repeater commits turn after turn of one instance as a pump does: the same batch
// again until it is answered.
type repeater struct {
	bundle
	random    *rand.Rand
	proxy     *faultproxy.Proxy
	cut       *store.Store // through the proxy
	session   string
	committed int64
	turns     int
}

func newRepeater(b bundle, random *rand.Rand) *repeater {
	b.t.Helper()
	w := &repeater{bundle: b, random: random, session: b.waiting("i").ID}
	w.proxy, w.cut = b.through()
	return w
}

// turn commits one turn in batches of random sizes.
func (w *repeater) turn() {
	w.t.Helper()
	w.turns++
	key, id := fmt.Sprintf("key-%d", w.turns), "t-"+credential.NewID()
	_, _, err := w.RecordTurn(w.ctx, w.inst, w.session, key, blocks, boot)
	require.NoError(w.t, err)
	w.repeat(store.Batch{TurnsStarted: []store.TurnStart{{Key: key, TurnID: id}}})
	for range w.random.IntN(4) {
		w.repeat(store.Batch{})
	}
	w.repeat(store.Batch{Outcomes: []store.Outcome{ended(id, key)}})
}

// attempts is far more than any batch needs.
const attempts = 500

// repeat commits the batch with some events in it, the shorter way first, and
// then the longer one, however often that takes.
func (w *repeater) repeat(b store.Batch) {
	w.t.Helper()
	var seqs []int64
	for range 1 + w.random.IntN(8) {
		seqs = append(seqs, w.committed+int64(len(seqs))+1)
	}
	b.Events = batch(store.Session{}, "i", seqs...).Events
	b.Installation, b.SessionID, b.InstanceID, b.BootID = w.inst, w.session, "i", boot
	last := seqs[len(seqs)-1]
	appended, err := w.cut.AppendTogether(w.ctx, []store.Batch{b})
	if err == nil && appended[0] {
		w.committed = last
		return
	}
	if err != nil {
		require.ErrorIs(w.t, err, store.ErrUnavailable)
	}
	for range attempts {
		committed, err := w.cut.CommitEvents(w.ctx, b)
		if err == nil {
			require.Equal(w.t, last, committed)
			w.committed = committed
			return
		}
		require.ErrorIs(w.t, err, store.ErrUnavailable)
	}
	require.Fail(w.t, "no connection lives long enough")
}

// check compares what is in the database with what was committed.
func (w *repeater) check() {
	w.t.Helper()
	var want []string
	for seq := range w.committed {
		want = append(want, fmt.Sprintf("i/%d", seq+1))
	}
	require.Equal(w.t, want, w.transcript(w.session))
	cursor, err := w.Cursor(w.ctx, w.inst, "i")
	require.NoError(w.t, err)
	require.Equal(w.t, w.committed, cursor)
	ends := 0
	for _, transition := range w.history(w.session) {
		if transition == "RUNNING>WAITING_FOR_INPUT turn_ended" {
			ends++
		}
	}
	require.Equal(w.t, w.turns, ends, "each turn ended once")
}
