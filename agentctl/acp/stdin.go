package acp

import (
	"errors"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Bounds of what waits for an agent that does not read.
const (
	maxQueuedFrames = 1024
	maxQueuedBytes  = 16 << 20
)

var errStdinClosed = errors.New("the agent's input is closed")

// stdinQueue writes frames to the agent in order, from a goroutine of its own,
// so that nobody else ever waits for the agent to read.
type stdinQueue struct {
	w      io.WriteCloser
	logger *zap.Logger
	done   chan struct{} // closed when the writer has ended and w is closed

	mu       sync.Mutex
	frames   [][]byte
	bytes    int           // of frames and the one being written
	finished bool          // no further frames
	wake     chan struct{} // holds one token when there is news for the writer
}

func newStdinQueue(w io.WriteCloser, logger *zap.Logger) *stdinQueue {
	return &stdinQueue{w: w, logger: logger, done: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// push queues a frame, which the queue owns from then on. admitted, if any, runs
// before the frame can reach the agent, and only if it will be tried. It never
// blocks: a full queue fails with ErrInputStuck, a closed one with
// errStdinClosed.
func (q *stdinQueue) push(frame []byte, admitted func()) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.finished {
		return errStdinClosed
	}
	if len(q.frames) >= maxQueuedFrames || q.bytes+len(frame) > maxQueuedBytes {
		return ErrInputStuck
	}
	if admitted != nil {
		admitted()
	}
	q.frames = append(q.frames, frame)
	q.bytes += len(frame)
	q.signal()
	return nil
}

func (q *stdinQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *stdinQueue) run() {
	defer close(q.done)
	for {
		frame, more := q.take()
		switch {
		case frame != nil:
			if _, err := q.w.Write(frame); err != nil {
				q.fail(err)
			}
			q.written(len(frame))
		case more:
			<-q.wake
		default:
			q.closeWriter()
			return
		}
	}
}

// take returns the next frame, or nil and whether any may follow.
func (q *stdinQueue) take() (frame []byte, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) == 0 {
		return nil, !q.finished
	}
	frame = q.frames[0]
	q.frames[0] = nil
	q.frames = q.frames[1:]
	return frame, true
}

func (q *stdinQueue) written(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= n
}

// fail ends the queue: an agent that closed its input reads nothing any more.
func (q *stdinQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.finished {
		q.logger.Info("agent_input_closed", zap.Error(err))
	}
	q.finished = true
	for _, f := range q.frames {
		q.bytes -= len(f)
	}
	q.frames = nil
}

// finish ends the queue once what it holds is written, or after patience.
func (q *stdinQueue) finish(patience time.Duration) {
	q.mu.Lock()
	q.finished = true
	q.signal()
	q.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-q.done:
	case <-timer.C:
		q.closeWriter() // ends the pending write
	}
}

func (q *stdinQueue) closeWriter() {
	if err := q.w.Close(); err != nil {
		q.logger.Debug("agent_input_close_failed", zap.Error(err))
	}
}
