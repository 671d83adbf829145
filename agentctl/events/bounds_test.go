package events

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// S-001.6: at the count bound a detached producer waits, loses nothing, and goes
// on after an attach without any acknowledgement.
func TestCountBoundHoldsWhileDetached(t *testing.T) {
	l := newTestLog(2, 1<<20)
	add(t, l, `1`)
	add(t, l, `2`)
	_, err := l.Append(done(), wire.EventUpdate, "", nil)
	require.ErrorIs(t, err, context.Canceled)
	paused := appendLater(context.Background(), l, `3`)

	s := attach(t, l, 0)
	require.NoError(t, receive(t, paused))
	for range 10 {
		add(t, l, `{}`)
	}
	var got []int64
	for len(got) < 13 {
		batch, err := s.Next(within(t))
		require.NoError(t, err)
		got = append(got, seqs(batch)...)
	}
	require.EqualValues(t, 13, got[12])

	s.Close()
	require.False(t, l.Attached())
	_, err = l.Append(done(), wire.EventUpdate, "", nil)
	require.ErrorIs(t, err, context.Canceled, "detached again: what is kept counts")
}

// B-8: the bound in bytes holds while attached too, empty events have a cost,
// and an acknowledgement frees a paused producer.
func TestByteBound(t *testing.T) {
	l := newTestLog(1000, 3*overhead)
	s := attach(t, l, 0)
	for range 3 {
		_, err := l.Append(done(), wire.EventUpdate, "", nil)
		require.NoError(t, err)
	}
	_, err := l.Append(done(), wire.EventUpdate, "", nil)
	require.ErrorIs(t, err, context.Canceled)
	paused := appendLater(context.Background(), l, ``)
	_, err = s.Next(within(t))
	require.NoError(t, err)
	require.NoError(t, s.Ack(1))
	require.NoError(t, receive(t, paused))
}

// B-8: an attached log that holds nothing takes an event beyond every bound; a
// detached one waits with it for the attach.
func TestAttachedHoldsOneFrame(t *testing.T) {
	budget := NewBudget(10)
	l := NewLog(Limits{Count: 10, Bytes: 10}, budget, fixedClock)
	big := strings.Repeat("x", 1000)
	paused := appendLater(context.Background(), l, big)
	_, err := l.Append(done(), wire.EventUpdate, "", json.RawMessage(big))
	require.ErrorIs(t, err, context.Canceled)

	attach(t, l, 0)
	require.NoError(t, receive(t, paused))
	_, err = l.Append(done(), wire.EventUpdate, "", nil)
	require.ErrorIs(t, err, context.Canceled, "one frame, not two")
	require.EqualValues(t, 1000+overhead, budget.Used())
}

// B-8: the overall bound pauses across logs, is given back by acknowledgement
// and by closing, and cannot starve an attached log.
func TestOverallBound(t *testing.T) {
	budget := NewBudget(2 * overhead)
	newLog := func() *Log { return NewLog(Limits{Count: 100, Bytes: 1 << 20}, budget, fixedClock) }
	hoarder, other, attached := newLog(), newLog(), newLog()
	for range 2 {
		_, err := hoarder.Append(done(), wire.EventUpdate, "", nil)
		require.NoError(t, err)
	}
	paused := appendLater(context.Background(), other, ``)
	_, err := other.Append(done(), wire.EventUpdate, "", nil)
	require.ErrorIs(t, err, context.Canceled)

	s := attach(t, attached, 0)
	for range 3 {
		_, err := attached.Append(done(), wire.EventUpdate, "", nil)
		require.NoError(t, err)
		batch, err := s.Next(within(t))
		require.NoError(t, err)
		require.NoError(t, s.Ack(batch[0].Seq))
	}

	hoarder.Close()
	require.NoError(t, receive(t, paused))
	require.EqualValues(t, overhead, budget.Used())
	other.Close()
	attached.Close()
	require.Zero(t, budget.Used())
}

// S-001.5, S-001.6, B-1: producers that pause again and again and readers that
// come and go give every event once, in order, after the cursor.
func TestConcurrentReattach(t *testing.T) {
	const total = 3000
	budget := NewBudget(64 * overhead)
	var wg sync.WaitGroup
	logs := make([]*Log, 3)
	for i := range logs {
		logs[i] = NewLog(Limits{Count: 5, Bytes: 32 * overhead}, budget, fixedClock)
		wg.Go(func() {
			for range total {
				if _, err := logs[i].Append(context.Background(), wire.EventUpdate, "", nil); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
			logs[i].Finish()
		})
	}
	for _, l := range logs {
		wg.Go(func() { readAll(t, l, total) })
	}
	wg.Wait()
	require.Zero(t, budget.Used())
}

// readAll takes one batch from each of many streams. Every second one dies
// before it acknowledges; the next one then does so first of all.
func readAll(t *testing.T, l *Log, total int64) {
	var cursor int64
	for round := 0; cursor < total; round++ {
		s, err := l.Attach(cursor)
		if err != nil {
			t.Errorf("attach after %d: %v", cursor, err)
			return
		}
		dies := round%2 == 1
		if !dies {
			if err := s.Ack(cursor); err != nil {
				t.Errorf("ack of the cursor: %v", err)
				return
			}
		}
		batch, err := s.Next(context.Background())
		if err != nil {
			t.Errorf("next: %v", err)
			return
		}
		for _, e := range batch {
			if cursor++; e.Seq != cursor {
				t.Errorf("got event %d, want %d", e.Seq, cursor)
				return
			}
		}
		if !dies || cursor == total {
			if err := s.Ack(cursor); err != nil {
				t.Errorf("ack: %v", err)
			}
		}
		s.Close()
	}
}
