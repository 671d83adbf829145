package events

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kandev/recovery/agentctl/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

var epoch = time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC)

func fixedClock() time.Time { return epoch }

func newTestLog(count int, bytes int64) *Log {
	return NewLog(Limits{Count: count, Bytes: bytes}, NewBudget(1<<40), fixedClock)
}

// done is a context under which Append never waits.
func done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func add(t *testing.T, l *Log, payload string) int64 {
	t.Helper()
	seq, err := l.Append(done(), wire.EventUpdate, "t-1", json.RawMessage(payload))
	require.NoError(t, err)
	return seq
}

func attach(t *testing.T, l *Log, after int64) *Stream {
	t.Helper()
	s, err := l.Attach(after)
	require.NoError(t, err)
	return s
}

func seqs(events []wire.Event) []int64 {
	var out []int64
	for _, e := range events {
		out = append(out, e.Seq)
	}
	return out
}

// appendLater appends from another goroutine and gives its result.
func appendLater(ctx context.Context, l *Log, payload string) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := l.Append(ctx, wire.EventUpdate, "", json.RawMessage(payload))
		result <- err
	}()
	return result
}

func receive(t *testing.T, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatal("append still waits")
		return nil
	}
}

// S-001.5, B-1: what was appended while nobody was attached arrives, numbered
// from 1 without holes, with kind, turn, time and payload.
func TestDeliversInOrder(t *testing.T) {
	l := newTestLog(10, 1<<20)
	for _, p := range []string{`1`, `2`, `3`} {
		add(t, l, p)
	}
	batch, err := attach(t, l, 0).Next(within(t))
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3}, seqs(batch))
	require.Equal(t, wire.Event{
		Seq: 2, Kind: wire.EventUpdate, TurnID: "t-1", At: epoch, Payload: json.RawMessage(`2`),
	}, batch[1])
	require.EqualValues(t, 3, l.LastSeq())
}

// B-1: what was delivered but not acknowledged is delivered again to the next
// stream; what was acknowledged is not.
func TestUnacknowledgedComesAgain(t *testing.T) {
	l := newTestLog(10, 1<<20)
	for range 4 {
		add(t, l, `{}`)
	}
	first := attach(t, l, 0)
	_, err := first.Next(within(t))
	require.NoError(t, err)
	require.NoError(t, first.Ack(2))
	first.Close()

	batch, err := attach(t, l, 2).Next(within(t))
	require.NoError(t, err)
	require.Equal(t, []int64{3, 4}, seqs(batch))
}

// B-1: a cursor before or after what is kept is refused with what is kept, and
// the stream in use stays.
func TestGap(t *testing.T) {
	l := newTestLog(10, 1<<20)
	for range 4 {
		add(t, l, `{}`)
	}
	s := attach(t, l, 0)
	_, err := s.Next(within(t))
	require.NoError(t, err)
	require.NoError(t, s.Ack(2))
	for _, after := range []int64{-1, 0, 1, 5, 99} {
		_, err := l.Attach(after)
		var gap *GapError
		require.ErrorAs(t, err, &gap, "after %d", after)
		require.Equal(t, GapError{First: 3, Next: 5}, *gap)
	}
	require.NoError(t, s.Err())
	for _, after := range []int64{2, 3, 4} {
		attach(t, l, after)
	}
	first, next := l.Bounds()
	require.Equal(t, []int64{3, 5}, []int64{first, next})
}

// B-1: the newest stream wins, also against a reader that waits.
func TestNewestStreamWins(t *testing.T) {
	l := newTestLog(10, 1<<20)
	older := attach(t, l, 0)
	result := nextLater(older)
	newer := attach(t, l, 0)
	require.ErrorIs(t, receive(t, result), ErrNewerStream)
	<-older.Done()
	require.ErrorIs(t, older.Err(), ErrNewerStream)
	require.ErrorIs(t, older.Ack(0), ErrNewerStream)

	older.Close()
	require.True(t, l.Attached(), "closing a stream that lost must not detach the winner")
	add(t, l, `{}`)
	batch, err := newer.Next(within(t))
	require.NoError(t, err)
	require.Len(t, batch, 1)
}

// B-1: only what was delivered can be acknowledged; the cursor counts as
// delivered, and repeating an acknowledgement is harmless.
func TestAck(t *testing.T) {
	l := newTestLog(10, 1<<20)
	for range 3 {
		add(t, l, `{}`)
	}
	s := attach(t, l, 1)
	require.ErrorIs(t, s.Ack(2), ErrNotDelivered)
	require.NoError(t, s.Ack(1))
	_, err := s.Next(within(t))
	require.NoError(t, err)
	require.ErrorIs(t, s.Ack(4), ErrNotDelivered)
	require.NoError(t, s.Ack(3))
	require.NoError(t, s.Ack(2))
	first, _ := l.Bounds()
	require.EqualValues(t, 4, first)
}

// S-001.10: closing frees paused producers and the reader at once; what was not
// delivered is gone.
func TestCloseFreesProducers(t *testing.T) {
	l := newTestLog(1, 1<<20)
	add(t, l, `1`)
	var paused []<-chan error
	for range 3 {
		paused = append(paused, appendLater(context.Background(), l, `2`))
	}
	l.Close()
	for _, p := range paused {
		require.ErrorIs(t, receive(t, p), ErrClosed)
	}
	_, err := l.Append(context.Background(), wire.EventUpdate, "", nil)
	require.ErrorIs(t, err, ErrClosed)
	_, err = l.Attach(0)
	require.ErrorIs(t, err, ErrClosed)
	l.Close()
	require.EqualValues(t, 1, l.LastSeq())

	l = newTestLog(1, 1<<20)
	s := attach(t, l, 0)
	result := nextLater(s)
	l.Close()
	require.ErrorIs(t, receive(t, result), ErrClosed)
	require.False(t, l.Attached())
}

// S-001.6: a finished log is delivered to its end, also to a later stream; only
// an acknowledged end closes Done.
func TestFinish(t *testing.T) {
	l := newTestLog(10, 1<<20)
	add(t, l, `1`)
	l.Finish()
	_, err := l.Append(context.Background(), wire.EventUpdate, "", nil)
	require.ErrorIs(t, err, ErrClosed)
	attach(t, l, 0).Close()

	s := attach(t, l, 0)
	batch, err := s.Next(within(t))
	require.NoError(t, err)
	require.Len(t, batch, 1)
	_, err = s.Next(within(t))
	require.ErrorIs(t, err, ErrFinished)
	require.NoError(t, s.Err(), "the last acknowledgement is still awaited")
	require.NoError(t, s.Ack(1))
	<-s.Done()
	require.ErrorIs(t, s.Err(), ErrFinished)

	s = attach(t, l, 1)
	<-s.Done()
	_, err = s.Next(within(t))
	require.ErrorIs(t, err, ErrFinished)
}

// A reader that waits hears of the end.
func TestFinishWakesReader(t *testing.T) {
	l := newTestLog(10, 1<<20)
	s := attach(t, l, 0)
	result := nextLater(s)
	l.Finish()
	require.ErrorIs(t, receive(t, result), ErrFinished)
}

// nextLater waits for the next batch in another goroutine.
func nextLater(s *Stream) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := s.Next(context.Background())
		result <- err
	}()
	return result
}

func TestNextEndsWithContext(t *testing.T) {
	l := newTestLog(10, 1<<20)
	s := attach(t, l, 0)
	_, err := s.Next(done())
	require.ErrorIs(t, err, context.Canceled)
	s.Close()
	_, err = s.Next(context.Background())
	require.ErrorIs(t, err, ErrStreamClosed)
}
