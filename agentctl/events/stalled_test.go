package events

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

const stall = 5 * time.Second

// watch is one permission request that waits to be announced, under a clock that
// the test moves.
type watch struct {
	t        *testing.T
	log      *Log
	raised   time.Time
	appended chan int64
	end      context.CancelFunc
	result   chan bool
	after    time.Duration // how long it took
}

// raise begins to watch; the request has no number yet.
func raise(t *testing.T, l *Log) *watch {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watch{
		t: t, log: l, raised: time.Now(), appended: make(chan int64, 1), end: cancel, result: make(chan bool, 1),
	}
	go func() {
		stalled := l.Stalled(ctx, stall, w.appended)
		w.after = time.Since(w.raised)
		w.result <- stalled
	}()
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
	return w
}

// raiseIn raises a request whose event finds room in the log.
func raiseIn(t *testing.T, l *Log) *watch {
	w := raise(t, l)
	w.appended <- add(t, l, `"request"`)
	return w
}

// cancelled requires the request to be given up after so long, and not before.
func (w *watch) cancelled(after time.Duration) {
	w.t.Helper()
	w.outstanding(after - time.Since(w.raised) - 1)
	pass(1)
	w.settled(true)
	require.Equal(w.t, after, w.after)
}

// outstanding requires that nothing becomes of the request for so long.
func (w *watch) outstanding(span time.Duration) {
	w.t.Helper()
	pass(span)
	synctest.Wait()
	require.Empty(w.t, w.result)
}

func (w *watch) settled(stalled bool) {
	w.t.Helper()
	synctest.Wait()
	require.Len(w.t, w.result, 1)
	require.Equal(w.t, stalled, <-w.result)
}

// inBubble runs a test of a log under a clock that only moves while all sleep.
func inBubble(t *testing.T, limits Limits, test func(t *testing.T, l *Log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, NewLog(limits, NewBudget(1<<40), time.Now))
	})
}

var roomy = Limits{Count: 100, Bytes: 1 << 30}

// pass lets time pass.
func pass(span time.Duration) { <-time.After(span) }

// take hands the next batch out to the reader.
func take(t *testing.T, s *Stream) {
	t.Helper()
	_, err := s.Next(t.Context())
	require.NoError(t, err)
}

// arrive says that everything that was handed out has arrived.
func arrive(t *testing.T, s *Stream) {
	t.Helper()
	require.True(t, s.UnderWay())
	s.Taken(s.delivered)
	require.False(t, s.UnderWay())
}

// S-001.9: a reader that has been stuck with a batch for 5 s since the request
// was raised costs the request, wherever the request is: within that batch,
// behind it, or not even appended.
func TestStalledReader(t *testing.T) {
	inBubble(t, roomy, func(t *testing.T, l *Log) {
		w := raiseIn(t, l)
		take(t, attach(t, l, 0))
		w.cancelled(stall)
	})
	inBubble(t, roomy, func(t *testing.T, l *Log) {
		add(t, l, `1`)
		take(t, attach(t, l, 0))
		pass(3 * time.Second)
		raiseIn(t, l).cancelled(stall)
	})
	inBubble(t, Limits{Count: 1, Bytes: overhead + 10}, func(t *testing.T, l *Log) {
		add(t, l, `1`)
		take(t, attach(t, l, 0))
		raise(t, l).cancelled(stall)
	})
}

// S-001.9: more that is handed out to a stuck reader gives it no more time, and
// what an earlier reader had taken is under way again to the next one.
func TestStalledReaderOfMore(t *testing.T) {
	inBubble(t, roomy, func(t *testing.T, l *Log) {
		s := attach(t, l, 0)
		add(t, l, `1`)
		take(t, s)
		w := raise(t, l)
		w.outstanding(stall - 1)
		w.appended <- add(t, l, `"request"`)
		take(t, s)
		w.cancelled(stall)
	})
	inBubble(t, roomy, func(t *testing.T, l *Log) {
		add(t, l, strings.Repeat("x", batchBytes))
		s := attach(t, l, 0)
		take(t, s)
		arrive(t, s)
		w := raiseIn(t, l)
		take(t, attach(t, l, 0)) // the window is shut behind it
		w.cancelled(stall)
	})
}

// S-001.9: the 5 s are those of one batch: a reader that takes each one late, but
// takes them, has not stalled.
func TestSlowReader(t *testing.T) {
	inBubble(t, roomy, func(t *testing.T, l *Log) {
		add(t, l, `1`)
		s := attach(t, l, 0)
		take(t, s)
		w := raise(t, l)
		for range 5 {
			w.outstanding(stall - 1)
			arrive(t, s)
			add(t, l, `1`)
			take(t, s)
		}
		w.appended <- add(t, l, `"request"`)
		w.outstanding(stall - 1)
		arrive(t, s)
		take(t, s)
		w.outstanding(stall - 1)
		arrive(t, s)
		w.settled(false)
	})
	inBubble(t, roomy, func(t *testing.T, l *Log) {
		s := attach(t, l, 0)
		w := raise(t, l)
		w.outstanding(time.Minute)
		add(t, l, `1`)
		pass(800 * time.Millisecond)
		take(t, s)
		w.cancelled(time.Minute + 800*time.Millisecond + stall)
	})
}

// S-001.9: without a stream a request is outstanding for ever, and a stream that
// ends before the 5 s leaves it so, for the next one.
func TestDetachedNeverStalls(t *testing.T) {
	inBubble(t, roomy, func(t *testing.T, l *Log) {
		w := raiseIn(t, l)
		w.outstanding(1000 * time.Hour)
		s := attach(t, l, 0)
		take(t, s)
		w.outstanding(stall - 1)
		s.Close()
		w.outstanding(1000 * time.Hour)
		take(t, attach(t, l, 0))
		w.outstanding(stall - 1)
		s = attach(t, l, 0)
		take(t, s)
		w.outstanding(stall - 1)
		arrive(t, s)
		w.settled(false)
	})
}

// S-001.9: a reader that takes everything and commits slowly is not stalled,
// however long and wherever the request waits: behind an exhausted window, or
// before a log without room.
func TestSlowCommitsNeverStall(t *testing.T) {
	inBubble(t, roomy, func(t *testing.T, l *Log) {
		big := strings.Repeat("x", batchBytes)
		add(t, l, big)
		s := attach(t, l, 0)
		take(t, s)
		arrive(t, s)
		w := raiseIn(t, l)
		waiting := nextLater(s)
		w.outstanding(1000 * time.Hour)
		require.NoError(t, s.Ack(1))
		require.NoError(t, <-waiting)
		arrive(t, s)
		w.settled(false)
	})
	inBubble(t, Limits{Count: 100, Bytes: overhead + 10}, func(t *testing.T, l *Log) {
		add(t, l, ``)
		s := attach(t, l, 0)
		take(t, s)
		arrive(t, s)
		w := raise(t, l)
		appended := appendLater(t.Context(), l, ``)
		w.outstanding(1000 * time.Hour)
		require.NoError(t, s.Ack(1))
		require.NoError(t, <-appended)
	})
}

// S-001.9, B-8: other instances that fill the overall bound never cost a request.
func TestOverallBoundNeverStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(2 * overhead)
		hoarder, l := NewLog(roomy, budget, time.Now), NewLog(roomy, budget, time.Now)
		_, err := l.Append(done(), wire.EventUpdate, "", nil)
		require.NoError(t, err)
		_, err = hoarder.Append(done(), wire.EventUpdate, "", nil)
		require.NoError(t, err)
		s := attach(t, l, 0)
		take(t, s)
		arrive(t, s)
		w := raise(t, l)
		appended := appendLater(t.Context(), l, ``)
		w.outstanding(1000 * time.Hour)
		hoarder.Close()
		require.NoError(t, <-appended)
	})
}

// S-001.9: once announced, a request is not in danger, whatever the reader does
// then; a commit and a cursor are proof of it, too. The end of the log or of the
// watch ends the question.
func TestAnnouncedOnce(t *testing.T) {
	for name, announce := range map[string]func(t *testing.T, w *watch){
		"taken": func(t *testing.T, w *watch) {
			s := attach(t, w.log, 0)
			take(t, s)
			arrive(t, s)
		},
		"committed": func(t *testing.T, w *watch) {
			s := attach(t, w.log, 0)
			take(t, s)
			require.NoError(t, s.Ack(1))
		},
		"behind the cursor": func(t *testing.T, w *watch) { attach(t, w.log, 1) },
		"log closed":        func(_ *testing.T, w *watch) { w.log.Close() },
		"answered":          func(_ *testing.T, w *watch) { w.end() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, roomy, func(t *testing.T, l *Log) {
				w := raiseIn(t, l)
				announce(t, w)
				w.settled(false)
			})
		})
	}
}
