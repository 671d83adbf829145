//go:build unix

package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

func batch(sess store.Session, instance string, seqs ...int64) store.Batch {
	b := store.Batch{Installation: sess.Installation, SessionID: sess.ID, InstanceID: instance, BootID: boot}
	for _, seq := range seqs {
		b.Events = append(b.Events, store.EventRow{
			Seq: seq, Kind: "update", At: time.Now(), Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, seq)),
		})
	}
	return b
}

func (b bundle) commit(batch store.Batch) int64 {
	b.t.Helper()
	committed, err := b.CommitEvents(b.ctx, batch)
	require.NoError(b.t, err)
	return committed
}

// transcript checks that positions have no hole, and returns "instance/seq".
func (b bundle) transcript(session string) (list []string) {
	b.t.Helper()
	events, err := b.EventsAfter(b.ctx, b.inst, session, 0, 1_000_000)
	require.NoError(b.t, err)
	for i, e := range events {
		require.EqualValues(b.t, i+1, e.Position)
		list = append(list, fmt.Sprintf("%s/%d", e.InstanceID, e.Seq))
	}
	count, err := b.CountEvents(b.ctx, b.inst, session)
	require.NoError(b.t, err)
	require.EqualValues(b.t, len(events), count)
	require.EqualValues(b.t, len(events), b.session(session).Position)
	return list
}

// B-1: the same batch twice, and batches that overlap what is committed, leave
// one row per event; the cursor is what may be acknowledged.
func TestCommitEventsIsIdempotent(t *testing.T) {
	b := setup(t)
	sess := b.waiting("i")
	cursor, err := b.Cursor(b.ctx, b.inst, "i")
	require.NoError(t, err)
	require.Zero(t, cursor)
	require.EqualValues(t, 3, b.commit(batch(sess, "i", 1, 2, 3)))
	require.EqualValues(t, 3, b.commit(batch(sess, "i", 1, 2, 3)))
	require.EqualValues(t, 5, b.commit(batch(sess, "i", 2, 3, 4, 5)))
	require.EqualValues(t, 5, b.commit(batch(sess, "i", 1)))
	require.EqualValues(t, 5, b.commit(batch(sess, "i")))
	require.Equal(t, []string{"i/1", "i/2", "i/3", "i/4", "i/5"}, b.transcript(sess.ID))
	cursor, err = b.Cursor(b.ctx, b.inst, "i")
	require.NoError(t, err)
	require.EqualValues(t, 5, cursor)
}

// B-1: a hole is refused with where it is, and nothing is written.
func TestCommitEventsRefusesHoles(t *testing.T) {
	b := setup(t)
	sess := b.waiting("i")
	for name, seqs := range map[string][]int64{
		"at the beginning": {2}, "inside": {1, 3}, "twice": {1, 1}, "backwards": {1, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.CommitEvents(b.ctx, batch(sess, "i", seqs...))
			require.ErrorIs(t, err, store.ErrEventGap)
		})
	}
	require.Empty(t, b.transcript(sess.ID))
	b.commit(batch(sess, "i", 1, 2))
	_, err := b.CommitEvents(b.ctx, batch(sess, "i", 2, 5))
	var gap *store.EventGapError
	require.ErrorAs(t, err, &gap)
	require.Equal(t, store.EventGapError{Cursor: 2, Got: 5}, *gap)
}

// B-1: what is lost for good is marked in the transcript, once, and the
// instance's events go on behind it.
func TestCommitGap(t *testing.T) {
	b := setup(t)
	sess := b.waiting("i")
	b.commit(batch(sess, "i", 1, 2))
	gap := store.Gap{Installation: b.inst, SessionID: sess.ID, InstanceID: "i", Next: 6, At: time.Now()}
	for range 2 {
		committed, err := b.CommitGap(b.ctx, gap)
		require.NoError(t, err)
		require.EqualValues(t, 5, committed)
	}
	require.EqualValues(t, 6, b.commit(batch(sess, "i", 6)))
	require.Equal(t, []string{"i/1", "i/2", "i/5", "i/6"}, b.transcript(sess.ID))
	events, err := b.EventsAfter(b.ctx, b.inst, sess.ID, 2, 1)
	require.NoError(t, err)
	require.Equal(t, store.EventKindGap, events[0].Kind)
	require.JSONEq(t, `{"first":3,"last":5}`, string(events[0].Payload))
}

// Positions count per session over all of its instances; an instance of one
// session cannot write into another.
func TestPositionsRunOverInstances(t *testing.T) {
	b := setup(t)
	sess, other := b.waiting("i"), b.waiting("k")
	b.commit(batch(sess, "i", 1, 2))
	b.commit(batch(other, "k", 1))
	b.commit(batch(sess, "j", 1))
	b.commit(batch(sess, "i", 3))
	require.Equal(t, []string{"i/1", "i/2", "j/1", "i/3"}, b.transcript(sess.ID))
	require.Equal(t, []string{"k/1"}, b.transcript(other.ID))
	_, err := b.CommitEvents(b.ctx, batch(sess, "k", 2))
	require.Error(t, err)
	require.Equal(t, []string{"k/1"}, b.transcript(other.ID))
}

// B-1: whatever an agent writes can be committed, and valid JSON comes back
// byte for byte.
func TestPayloadsThatPostgresDislikes(t *testing.T) {
	b := setup(t)
	sess := b.waiting("i")
	cases := []struct{ payload, want string }{
		{`{"b":1, "a":"\u0000 \ud800"}`, `{"b":1, "a":"\u0000 \ud800"}`},
		{"{\"a\":\"\xff\"}", "{\"a\":\"\uFFFD\"}"},
		{"{\"a\":\"\x00\"}", `"{\"a\":\"\u0000\"}"`},
		{"no json", `"no json"`},
		{"", ""},
		{strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), ""},
		{`"` + strings.Repeat("x", 2<<20) + `"`, `"` + strings.Repeat("x", 2<<20) + `"`},
	}
	commit := batch(sess, "i")
	for i, c := range cases {
		commit.Events = append(commit.Events, store.EventRow{
			Seq: int64(i) + 1, Kind: "up\x00date", TurnID: "t\xff", Payload: json.RawMessage(c.payload),
		})
	}
	b.commit(commit)
	events, err := b.EventsAfter(b.ctx, b.inst, sess.ID, 0, 100)
	require.NoError(t, err)
	require.Len(t, events, len(cases))
	for i, c := range cases {
		if len(c.payload) > 0 {
			require.True(t, json.Valid(events[i].Payload), "event %d", i+1)
		}
		if c.want != "" || c.payload == "" {
			require.Equal(t, c.want, string(events[i].Payload))
		}
	}
	require.Equal(t, "up\uFFFDdate", events[0].Kind)
	require.Equal(t, "t\uFFFD", events[0].TurnID)
}

// Times come back as they were written, to the microsecond (so that a
// comparison after a round trip holds).
func TestEventTimesKeepMicroseconds(t *testing.T) {
	b := setup(t)
	sess := b.waiting("i")
	at := time.Date(2026, 7, 31, 23, 59, 59, 999_999_999, time.FixedZone("", 7200))
	commit := batch(sess, "i", 1)
	commit.Events[0].At = at
	b.commit(commit)
	events, err := b.EventsAfter(b.ctx, b.inst, sess.ID, 0, 1)
	require.NoError(t, err)
	require.True(t, at.Truncate(time.Microsecond).Equal(events[0].At), "%s", events[0].At)
}

// B-1, S-004.4: turn starts and ends that a batch carries are applied in its
// transaction, once.
func TestBatchAppliesTurns(t *testing.T) {
	b := setup(t)
	sess := b.waiting("i")
	_, _, err := b.RecordTurn(b.ctx, b.inst, sess.ID, "key", blocks, boot)
	require.NoError(t, err)
	commit := batch(sess, "i", 1, 2)
	commit.TurnsStarted = []store.TurnStart{{Key: "key", TurnID: "t-1"}, {Key: "unknown", TurnID: "t-0"}}
	b.commit(commit)
	require.Equal(t, recovery.TurnOpen, b.lastTurn(sess.ID).State)
	commit = batch(sess, "i", 3)
	commit.Outcomes = []store.Outcome{ended("t-1", "key")}
	b.commit(commit)
	b.state(sess.ID, recovery.StateWaitingForInput, recovery.TaskReview)
	b.prompt(sess.ID, "next", "t-2")
	b.commit(commit)
	b.state(sess.ID, recovery.StateRunning, recovery.TaskInProgress)
	require.Equal(t, recovery.TurnOpen, b.lastTurn(sess.ID).State, "a repeated batch does not touch the next turn")
}

// A batch that cannot be applied as a whole leaves nothing of itself.
func TestBatchIsAtomic(t *testing.T) {
	b := setupAt(t, storetest.FreshDSN(t))
	sess := b.running("i", "key", "t-1")
	conn := b.direct()
	_, err := conn.Exec(b.ctx, `ALTER TABLE session_transitions ADD CHECK (cause <> 'turn_ended')`)
	require.NoError(t, err)
	commit := batch(sess, "i", 1)
	commit.Outcomes = []store.Outcome{ended("t-1", "key")}
	_, err = b.CommitEvents(b.ctx, commit)
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrUnavailable)
	require.Empty(t, b.transcript(sess.ID))
	require.Equal(t, recovery.TurnOpen, b.lastTurn(sess.ID).State)
	b.state(sess.ID, recovery.StateRunning, recovery.TaskInProgress)
}

// B-1: two pumps that overlap for a moment, and many instances of one session,
// leave one row per event and positions without holes.
func TestConcurrentCommits(t *testing.T) {
	b := setup(t)
	sess := b.waiting("i")
	const instances, events, writers = 3, 20, 2
	var all sync.WaitGroup
	for i := range instances {
		for range writers {
			all.Go(func() {
				for seq := int64(1); seq <= events; seq++ {
					_, err := b.CommitEvents(b.ctx, batch(sess, fmt.Sprint("x", i), seq))
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	require.Len(t, b.transcript(sess.ID), instances*events)
}

// A reader's cursor never skips a row that commits late: while a transaction
// that took positions is open, no later position becomes visible.
func TestPositionsBecomeVisibleInOrder(t *testing.T) {
	b := setup(t)
	sess := b.waiting("i")
	var all sync.WaitGroup
	done := make(chan struct{})
	for i := range 3 {
		all.Go(func() {
			for seq := int64(1); seq <= 30; seq++ {
				if _, err := b.CommitEvents(b.ctx, batch(sess, fmt.Sprint("y", i), seq)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	go func() { all.Wait(); close(done) }()
	position, finished := int64(0), false
	for !finished {
		select {
		case <-done:
			finished = true
		default:
		}
		events, err := b.EventsAfter(b.ctx, b.inst, sess.ID, position, 7)
		require.NoError(t, err)
		for _, e := range events {
			require.Equal(t, position+1, e.Position)
			position = e.Position
		}
		finished = finished && len(events) == 0
	}
	require.EqualValues(t, 90, position)
}
