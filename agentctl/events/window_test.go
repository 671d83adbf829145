package events

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Batches are bounded in events and bytes; one event may exceed the bytes.
func TestBatches(t *testing.T) {
	l := newTestLog(2000, 1<<30)
	for range 600 {
		add(t, l, `{}`)
	}
	half := strings.Repeat("x", batchBytes/2)
	add(t, l, half)
	add(t, l, half)
	add(t, l, strings.Repeat("x", 2*batchBytes))
	s := attach(t, l, 0)
	var sizes []int
	for last := int64(0); last < 603; {
		batch, err := s.Next(within(t))
		require.NoError(t, err)
		require.Equal(t, last+1, batch[0].Seq)
		last = batch[len(batch)-1].Seq
		sizes = append(sizes, len(batch))
		require.NoError(t, s.Ack(last))
	}
	require.Equal(t, []int{512, 89, 1, 1}, sizes)
}

// B-8, S-001.9: a reader gets two batches ahead of its acknowledgements, also in
// many small pieces, and then nothing; what an earlier reader has left
// unacknowledged does not count.
func TestWindow(t *testing.T) {
	l := newTestLog(5000, 1<<30)
	for range 600 {
		add(t, l, `{}`)
	}
	s := attach(t, l, 500)
	requireNext(t, s, 501, 600)
	for n := int64(601); n <= 1013; n++ {
		add(t, l, `{}`)
		requireNext(t, s, n, n)
	}
	for range 600 {
		add(t, l, `{}`)
	}
	_, err := s.Next(done())
	require.ErrorIs(t, err, context.Canceled, "513 are outstanding")
	require.NoError(t, s.Ack(501))
	requireNext(t, s, 1014, 1525)
	_, err = s.Next(done())
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Ack(1525))
	requireNext(t, s, 1526, 1613)

	big := strings.Repeat("x", batchBytes)
	add(t, l, big)
	add(t, l, big)
	add(t, l, `{}`)
	requireNext(t, s, 1614, 1614)
	_, err = s.Next(done())
	require.ErrorIs(t, err, context.Canceled, "the window counts bytes")
	waiting := nextLater(s)
	require.NoError(t, s.Ack(1614))
	require.NoError(t, receive(t, waiting))
}

func requireNext(t *testing.T, s *Stream, first, last int64) {
	t.Helper()
	batch, err := s.Next(within(t))
	require.NoError(t, err)
	require.Equal(t, []int64{first, last}, []int64{batch[0].Seq, batch[len(batch)-1].Seq})
}
