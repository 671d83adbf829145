//go:build unix

package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/stack/faultproxy"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

// begun is a session with an instance of that name whose first event is committed.
func (b bundle) begun(instance string) store.Session {
	b.t.Helper()
	sess := b.waiting(instance)
	b.commit(batch(sess, instance, 1))
	return sess
}

func (b bundle) together(batches ...store.Batch) []bool {
	b.t.Helper()
	appended, err := b.AppendTogether(b.ctx, batches)
	require.NoError(b.t, err)
	return appended
}

// B-1: batches of several sessions are committed by one statement, each behind its
// own cursor and at its own session's next position.
func TestAppendTogether(t *testing.T) {
	b := setup(t)
	one, two := b.begun("i"), b.begun("k")
	b.commit(batch(two, "other", 1, 2, 3))
	proxy, s := b.through()
	b.Store = s
	require.Equal(t, []bool{true, true}, b.together(batch(two, "k", 2), batch(two, "k", 3)), "one after the other")
	before := len(proxy.Statements()) // the connection knows the statement by now
	require.Equal(t, []bool{true, true}, b.together(batch(one, "i", 2, 3), batch(two, "k", 4)))
	require.Len(t, proxy.Statements(), before+1)
	require.Equal(t, []string{"i/1", "i/2", "i/3"}, b.transcript(one.ID))
	require.Equal(t, []string{"k/1", "other/1", "other/2", "other/3", "k/2", "k/3", "k/4"}, b.transcript(two.ID))
	for instance, want := range map[string]int64{"i": 3, "k": 4} {
		cursor, err := b.Cursor(b.ctx, b.inst, instance)
		require.NoError(t, err)
		require.Equal(t, want, cursor)
	}
	require.Empty(t, b.together())
}

// B-1: what cannot simply be appended is left alone, and said so; it does not keep
// the others.
func TestAppendTogetherLeavesWhatIsNotNext(t *testing.T) {
	b := setup(t)
	good, bad, open := b.begun("i"), b.begun("k"), b.begun("l")
	b.prompt(open.ID, "key", "t-1")
	turn := batch(open, "l", 2)
	turn.Outcomes = []store.Outcome{ended("t-1", "key")}
	started := batch(open, "l", 2)
	started.TurnsStarted = []store.TurnStart{{Key: "key", TurnID: "t-1"}}
	unknown, foreign := batch(bad, "k", 2), batch(bad, "k", 2)
	unknown.SessionID, foreign.Installation = "nobody", "elsewhere"
	const theirs = 1000 // stands for the number that would be next for good
	next := int64(2)
	for name, left := range map[string]store.Batch{
		"an instance's first":  batch(bad, "new", 1),
		"repeated":             batch(bad, "k", 1),
		"overlapping":          batch(bad, "k", 1, 2),
		"behind a hole":        batch(bad, "k", 3),
		"with a hole":          batch(bad, "k", 2, 4),
		"empty":                batch(bad, "k"),
		"another session's":    batch(bad, "i", theirs),
		"of no session":        unknown,
		"another installation": foreign,
		"ends a turn":          turn,
		"starts a turn":        started,
	} {
		t.Run(name, func(t *testing.T) {
			if len(left.Events) > 0 && left.Events[0].Seq == theirs {
				left.Events[0].Seq = next + 1
			}
			require.Equal(t, []bool{true, false, true},
				b.together(batch(good, "i", next), left, batch(good, "i", next+1)))
			next += 2
		})
	}
	require.Len(t, b.transcript(good.ID), int(next)-1)
	require.Equal(t, []string{"k/1"}, b.transcript(bad.ID))
	require.Equal(t, []string{"l/1"}, b.transcript(open.ID))
}

// A session that somebody else has locked does not hold up the others.
func TestAppendTogetherPassesLockedSessions(t *testing.T) {
	b := setup(t)
	free, locked := b.begun("i"), b.begun("k")
	tx, err := b.direct().Begin(b.ctx)
	require.NoError(t, err)
	_, err = tx.Exec(b.ctx, `SELECT 1 FROM task_sessions WHERE installation_id = $1 AND id = $2 FOR NO KEY UPDATE`, b.inst, locked.ID)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true}, b.together(batch(locked, "k", 2), batch(free, "i", 2)))
	require.NoError(t, tx.Rollback(b.ctx))
	require.Equal(t, []bool{true}, b.together(batch(locked, "k", 2)))
}

// B-1: nobody learned of a commit that sessions shared. Each of them repeats its
// batch, and has every event once.
func TestLostAnswerOfASharedCommit(t *testing.T) {
	for _, kind := range []faultproxy.Kind{faultproxy.AtCommit, faultproxy.AfterCommit} {
		t.Run(string(kind), func(t *testing.T) {
			b := setup(t)
			one, two := b.begun("i"), b.begun("k")
			proxy, cutOff := b.through()
			proxy.Use(func() faultproxy.Fault { return faultproxy.Fault{Kind: kind} })
			batches := []store.Batch{batch(one, "i", 2, 3), batch(two, "k", 2)}
			_, err := cutOff.AppendTogether(b.ctx, batches)
			require.ErrorIs(t, err, store.ErrUnavailable)
			for _, again := range batches {
				b.commit(again)
			}
			require.Equal(t, []string{"i/1", "i/2", "i/3"}, b.transcript(one.ID))
			require.Equal(t, []string{"k/1", "k/2"}, b.transcript(two.ID))
		})
	}
}

// One batch that the database refuses fails all, of which nothing is written. The
// error does not ask to repeat them together.
func TestRefusedSharedCommit(t *testing.T) {
	b := setupAt(t, storetest.FreshDSN(t))
	one, two := b.begun("i"), b.begun("k")
	_, err := b.direct().Exec(b.ctx, `ALTER TABLE agent_events ADD CHECK (kind <> 'poison')`)
	require.NoError(t, err)
	poisoned := batch(one, "i", 2)
	poisoned.Events[0].Kind = "poison"
	_, err = b.AppendTogether(b.ctx, []store.Batch{poisoned, batch(two, "k", 2)})
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrUnavailable)
	require.Equal(t, []string{"k/1"}, b.transcript(two.ID))
	b.commit(batch(two, "k", 2))
}

// B-1: backends that overlap for a moment append to the same sessions, in any
// order, and neither waits for the other for ever: every event is there once.
func TestSharedCommitsOverlap(t *testing.T) {
	b := setup(t)
	const sessions, events, writers = 4, 25, 3
	var all []store.Session
	for i := range sessions {
		all = append(all, b.begun(fmt.Sprint("i", i)))
	}
	var writing sync.WaitGroup
	for writer := range writers {
		random := rand.New(rand.NewPCG(1, uint64(writer)))
		writing.Go(func() {
			for seq := int64(2); seq <= events; seq++ {
				var batches []store.Batch
				for _, i := range random.Perm(sessions) {
					batches = append(batches, batch(all[i], fmt.Sprint("i", i), seq))
				}
				if err := b.commitAll(batches); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	for i, sess := range all {
		var want []string
		for seq := range events {
			want = append(want, fmt.Sprintf("i%d/%d", i, seq+1))
		}
		require.Equal(t, want, b.transcript(sess.ID))
	}
}

// commitAll commits batches as pumps do: together, and what is left one by one.
func (b bundle) commitAll(batches []store.Batch) error {
	appended, err := b.AppendTogether(b.ctx, batches)
	if err != nil {
		return err
	}
	for i, left := range batches {
		if !appended[i] {
			if _, err := b.CommitEvents(b.ctx, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// B-1: a reader never skips a position that becomes visible late.
func TestSharedPositionsBecomeVisibleInOrder(t *testing.T) {
	b := setup(t)
	one, two := b.begun("i"), b.begun("k")
	tx, err := b.direct().Begin(b.ctx)
	require.NoError(t, err)
	defer func() { require.ErrorIs(t, tx.Rollback(b.ctx), pgx.ErrTxClosed) }()
	_, err = tx.Exec(b.ctx, `SELECT append_batches($1, $2, '{i,k}', '{1,1}', '{1,1}', '{1,2}', '{2,2}', '{a,a}', '{"",""}', $3, '{1,2}')`,
		b.inst, []string{one.ID, two.ID}, slices.Repeat([]any{"2026-01-01T00:00:00Z"}, 2))
	require.NoError(t, err)
	// Another writer of the same session gets no position before this one ends.
	require.Equal(t, []bool{false}, b.together(batch(one, "i", 2)))
	require.NoError(t, tx.Commit(b.ctx))
	require.Equal(t, []bool{false}, b.together(batch(one, "i", 2)), "it is there")
	require.Equal(t, []string{"i/1", "i/2"}, b.transcript(one.ID))
}
