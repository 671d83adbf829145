package events

import (
	"context"

	"github.com/kandev/recovery/agentctl/wire"
)

// Bounds of one batch. A single event may exceed the bytes. The same bounds are
// the window: while more than that is delivered and not acknowledged, nothing
// is handed out, so that at most two batches are.
const (
	batchEvents = 512
	batchBytes  = 1 << 20
)

// Stream delivers a log's events to one reader. Next has one caller at a time;
// the other methods may be called from anywhere.
type Stream struct {
	log       *Log
	after     int64 // the cursor that it began with
	delivered int64 // newest number returned by Next, or the cursor
	taken     int64 // newest number that the reader is known to have, or the cursor
	err       error // why it ended, nil before
	done      chan struct{}
}

func newStream(l *Log, after int64) *Stream {
	return &Stream{log: l, after: after, delivered: after, taken: after, done: make(chan struct{})}
}

// Next waits for events after the last ones returned and gives them in order,
// at least one, about 1 MiB or 512 at most. It waits, too, while more than that
// is returned and not acknowledged. What it returns counts as on its way to the
// reader (see Log.Stalled) until that is known to have taken it, by Taken or Ack.
// Once a finished log is delivered it returns ErrFinished, while Ack still works;
// otherwise its error is Err's, or ctx's.
func (s *Stream) Next(ctx context.Context) ([]wire.Event, error) {
	for {
		batch, changed, err := s.batch()
		if err != nil || len(batch) > 0 {
			return batch, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Taken says that the reader has everything up to seq, of what was delivered. On
// a stream that has ended it does nothing.
func (s *Stream) Taken(seq int64) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.err != nil {
		return
	}
	s.take(min(seq, s.delivered))
	l.notify()
}

// take must run under the log's lock.
func (s *Stream) take(seq int64) {
	s.taken = max(s.taken, seq)
	s.log.taken = max(s.log.taken, seq)
}

// UnderWay reports whether something was delivered that the reader is not known
// to have.
func (s *Stream) UnderWay() bool {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.underWay()
}

func (s *Stream) underWay() bool { return s.err == nil && s.taken < s.delivered }

func (s *Stream) batch() ([]wire.Event, <-chan struct{}, error) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.err != nil {
		return nil, nil, s.err
	}
	first := l.first()
	waiting := l.events[s.delivered+1-first:]
	if len(waiting) == 0 {
		if l.finished {
			return nil, nil, ErrFinished
		}
		return nil, l.changed, nil
	}
	if exhausted(l.events[max(s.after+1-first, 0) : s.delivered+1-first]) {
		return nil, l.changed, nil
	}
	batch := append([]wire.Event(nil), waiting[:batchSize(waiting)]...)
	s.delivered = batch[len(batch)-1].Seq
	l.notify()
	return batch, nil, nil
}

// exhausted says whether what the reader has not acknowledged is more than one
// batch may hold.
func exhausted(outstanding []wire.Event) bool {
	return fitting(outstanding) < len(outstanding)
}

// batchSize is how many events the next batch gets: those that fit, but one.
func batchSize(waiting []wire.Event) int { return max(fitting(waiting), 1) }

// fitting counts the first events that are within the bounds of a batch.
func fitting(events []wire.Event) int {
	var size int64
	n := 0
	for n < len(events) && n < batchEvents && size+cost(events[n]) <= batchBytes {
		size += cost(events[n])
		n++
	}
	return n
}

// Ack says that everything up to seq is durable elsewhere; the log drops it.
// Repeating one, or naming the cursor, is harmless. A number that was not
// delivered is refused with ErrNotDelivered; an ended stream with its reason.
func (s *Stream) Ack(seq int64) error {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if seq > s.delivered {
		return ErrNotDelivered
	}
	s.take(seq)
	if n := seq + 1 - l.first(); n > 0 {
		l.drop(int(n))
		l.endIfSettled()
		l.notify()
	}
	return nil
}

// Close detaches. Events that were not acknowledged stay in the log.
func (s *Stream) Close() {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.err != nil {
		return
	}
	s.end(ErrStreamClosed)
	l.stream = nil
	l.notify()
}

// Done is closed once the stream has ended: by Close, a newer stream, the log's
// Close, or because a finished log is delivered and acknowledged.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Err says why the stream ended, nil before.
func (s *Stream) Err() error {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.err
}

// end must run under the log's lock, once.
func (s *Stream) end(reason error) {
	s.err = reason
	close(s.done)
}
