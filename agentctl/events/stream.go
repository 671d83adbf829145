package events

import (
	"context"

	"github.com/kandev/recovery/agentctl/wire"
)

// Bounds of one batch. A single event may exceed the bytes.
const (
	batchEvents = 512
	batchBytes  = 1 << 20
)

// Stream delivers a log's events to one reader. Next has one caller at a time;
// the other methods may be called from anywhere.
type Stream struct {
	log       *Log
	delivered int64 // newest number returned by Next, or the cursor
	err       error // why it ended, nil before
	done      chan struct{}
}

func newStream(l *Log, after int64) *Stream {
	return &Stream{log: l, delivered: after, done: make(chan struct{})}
}

// Next waits for events after the last ones returned and gives them in order,
// at least one, about 1 MiB or 512 at most. Once a finished log is delivered it
// returns ErrFinished, while Ack still works; otherwise its error is Err's, or
// ctx's.
func (s *Stream) Next(ctx context.Context) ([]wire.Event, error) {
	for {
		batch, changed, err := s.take()
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

func (s *Stream) take() ([]wire.Event, <-chan struct{}, error) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.err != nil {
		return nil, nil, s.err
	}
	waiting := l.events[s.delivered+1-l.first():]
	if len(waiting) == 0 {
		if l.finished {
			return nil, nil, ErrFinished
		}
		return nil, l.changed, nil
	}
	batch := append([]wire.Event(nil), waiting[:batchSize(waiting)]...)
	s.delivered = batch[len(batch)-1].Seq
	return batch, nil, nil
}

func batchSize(waiting []wire.Event) int {
	size := cost(waiting[0])
	n := 1
	for n < len(waiting) && n < batchEvents && size+cost(waiting[n]) <= batchBytes {
		size += cost(waiting[n])
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
