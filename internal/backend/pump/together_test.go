package pump

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/store"
)

// ledger is a journal that keeps what it was asked, and answers when and what the
// test says.
type ledger struct {
	mu     sync.Mutex
	shared [][]string // sessions of each shared transaction
	alone  []string   // sessions that committed alone
	answer func(ctx context.Context, batches []store.Batch) ([]bool, error)
}

func (l *ledger) AppendTogether(ctx context.Context, batches []store.Batch) ([]bool, error) {
	l.mu.Lock()
	var sessions []string
	for _, b := range batches {
		sessions = append(sessions, b.SessionID)
	}
	l.shared = append(l.shared, sessions)
	l.mu.Unlock()
	return l.answer(ctx, batches)
}

func (l *ledger) CommitEvents(_ context.Context, b store.Batch) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alone = append(l.alone, b.SessionID)
	return b.Events[len(b.Events)-1].Seq, nil
}

func (*ledger) Cursor(context.Context, string, string) (int64, error) { panic("not asked") }
func (*ledger) CommitGap(context.Context, store.Gap) (int64, error)   { panic("not asked") }
func all(_ context.Context, batches []store.Batch) (taken []bool, _ error) {
	for range batches {
		taken = append(taken, true)
	}
	return taken, nil
}

// committing is pumps that commit, each in a goroutine of its own, under a clock
// that moves while all of them wait.
type committing struct {
	*ledger
	t        *testing.T
	together *together
	end      context.CancelFunc
	results  map[string]chan error
}

func inCommits(t *testing.T, test func(c *committing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		l := &ledger{answer: all}
		c := &committing{
			ledger: l, t: t, end: end, results: map[string]chan error{},
			together: &together{life: life, cfg: Config{
				Journal: l, Clock: time.Now, Written: func(time.Duration) {}, SharedFor: 30 * time.Second,
			}},
		}
		defer func() {
			end()
			c.together.landed.Wait()
		}()
		test(c)
	})
}

// commit has a session's pump commit n events of a size.
func (c *committing) commit(ctx context.Context, session string, n, size int) {
	b := store.Batch{SessionID: session}
	for i := range n {
		b.Events = append(b.Events, store.EventRow{Seq: int64(i) + 1, Payload: json.RawMessage(strings.Repeat("x", size))})
	}
	done := make(chan error, 1)
	c.results[session] = done
	go func() {
		last, err := c.together.commit(ctx, b)
		if err == nil && last != int64(n) {
			err = fmt.Errorf("%d events are said to be committed, not %d", last, n)
		}
		done <- err
	}()
	synctest.Wait()
}

func (c *committing) finished(session string) error {
	c.t.Helper()
	synctest.Wait()
	require.Len(c.t, c.results[session], 1, session)
	return <-c.results[session]
}

// hold lets shared transactions wait until they are released, one by one.
func (c *committing) hold() (release chan struct{}) {
	release = make(chan struct{})
	c.answer = func(ctx context.Context, batches []store.Batch) ([]bool, error) {
		select {
		case <-release:
			return all(ctx, batches)
		case <-ctx.Done():
			return nil, store.ErrUnavailable
		}
	}
	return release
}

// A batch goes at once while there is room; what comes during the transactions
// that are under way is the next one.
func TestWaitingPumpsShareACommit(t *testing.T) {
	inCommits(t, func(c *committing) {
		release := c.hold()
		for _, session := range []string{"a", "b", "c", "d", "e"} {
			c.commit(c.t.Context(), session, 1, 1)
		}
		require.Equal(c.t, [][]string{{"a"}, {"b"}}, c.shared)
		release <- struct{}{}
		synctest.Wait()
		require.Equal(c.t, [][]string{{"a"}, {"b"}, {"c", "d", "e"}}, c.shared)
		release <- struct{}{}
		release <- struct{}{}
		for session := range c.results {
			require.NoError(c.t, c.finished(session))
		}
		require.Empty(c.t, c.alone)
		c.answer = all
		c.commit(c.t.Context(), "f", 1, 1)
		require.NoError(c.t, c.finished("f"), "it goes on after nobody waited")
	})
}

// A shared transaction is bounded in events and bytes, but takes any one batch.
func TestSharedCommitsAreBounded(t *testing.T) {
	inCommits(t, func(c *committing) {
		release := c.hold()
		c.commit(c.t.Context(), "first", 1, 1)
		c.commit(c.t.Context(), "second", 1, 1)
		c.commit(c.t.Context(), "a", flightEvents-1, 1)
		c.commit(c.t.Context(), "b", 1, 1)
		c.commit(c.t.Context(), "one more", 1, 1)
		c.commit(c.t.Context(), "c", 1, flightBytes)
		c.commit(c.t.Context(), "d", 1, 1)
		c.commit(c.t.Context(), "e", 1, 2*flightBytes)
		c.commit(c.t.Context(), "f", flightEvents+1, 1)
		close(release)
		synctest.Wait()
		require.ElementsMatch(c.t, [][]string{{"first"}, {"second"}, {"a", "b"}, {"one more"}, {"c"}, {"d"}, {"e"}, {"f"}}, c.shared)
	})
}

// What a shared transaction leaves out commits alone, and keeps nobody.
func TestLeftOutBatchesCommitAlone(t *testing.T) {
	inCommits(t, func(c *committing) {
		c.answer = func(_ context.Context, batches []store.Batch) (taken []bool, _ error) {
			for _, b := range batches {
				taken = append(taken, b.SessionID != "left")
			}
			return taken, nil
		}
		c.commit(c.t.Context(), "left", 3, 1)
		c.commit(c.t.Context(), "taken", 3, 1)
		require.NoError(c.t, c.finished("left"))
		require.NoError(c.t, c.finished("taken"))
		require.Equal(c.t, []string{"left"}, c.alone)
	})
}

// Everybody in a transaction that failed is told why, and nothing else is done:
// whether it was written is not known.
func TestFailedSharedCommit(t *testing.T) {
	inCommits(t, func(c *committing) {
		failure := errors.New("refused")
		c.answer = func(context.Context, []store.Batch) ([]bool, error) { return nil, failure }
		c.commit(c.t.Context(), "a", 1, 1)
		require.ErrorIs(c.t, c.finished("a"), failure)
		require.Empty(c.t, c.alone)
	})
}

// A connection that is stuck costs those in it their attempt, and after that
// nobody.
func TestStuckSharedCommitIsGivenUp(t *testing.T) {
	inCommits(t, func(c *committing) {
		c.hold()
		began := time.Now()
		c.commit(c.t.Context(), "a", 1, 1)
		require.ErrorIs(c.t, <-c.results["a"], store.ErrUnavailable)
		require.Equal(c.t, 30*time.Second, time.Since(began))
	})
}

// A pump that is stopped waits for nothing, and what it had waiting is not written
// any more. The end of all pumps ends what is under way.
func TestStoppedPumpsLeave(t *testing.T) {
	inCommits(t, func(c *committing) {
		release := c.hold()
		c.commit(c.t.Context(), "a", 1, 1)
		c.commit(c.t.Context(), "b", 1, 1)
		ctx, stop := context.WithCancel(c.t.Context())
		c.commit(ctx, "stopped", 1, 1)
		c.commit(c.t.Context(), "c", 1, 1)
		stop()
		require.ErrorIs(c.t, c.finished("stopped"), context.Canceled)
		release <- struct{}{}
		synctest.Wait()
		require.Equal(c.t, [][]string{{"a"}, {"b"}, {"c"}}, c.shared)
		c.end()
		require.ErrorIs(c.t, c.finished("c"), store.ErrUnavailable)
	})
}
