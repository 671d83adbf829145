package acp

import (
	"context"
	"encoding/json"
	"sync"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// entry is an event to be recorded.
type entry struct {
	kind    wire.EventKind
	turnID  string
	payload json.RawMessage
}

// newEntry encodes a payload of package wire, which cannot fail.
func newEntry(kind wire.EventKind, turnID string, payload any) entry {
	raw, err := json.Marshal(payload)
	if err != nil {
		panic("acp: payload of " + string(kind) + ": " + err.Error())
	}
	return entry{kind: kind, turnID: turnID, payload: raw}
}

// journal brings two sources into one order: what the agent says, whose
// recording blocks the reading of its output, and what is said to the agent,
// which must not block anybody. What was posted before is recorded before.
type journal struct {
	ctx      context.Context // ends the wait for a recorder that blocks
	recorder Recorder
	logger   *zap.Logger
	warn     sync.Once

	order sync.Mutex // held while recording

	mu    sync.Mutex
	posts []entry
	wake  chan struct{} // holds one token when there are posts
}

func newJournal(ctx context.Context, recorder Recorder, logger *zap.Logger) *journal {
	return &journal{ctx: ctx, recorder: recorder, logger: logger, wake: make(chan struct{}, 1)}
}

// post has the entry recorded soon, and before anything recorded later.
func (j *journal) post(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.posts = append(j.posts, e)
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// record returns when the posted entries and these are recorded, or cannot be.
// It gives the number of the last one, 0 if that could not be recorded.
func (j *journal) record(entries ...entry) (seq int64) {
	j.order.Lock()
	defer j.order.Unlock()
	for _, e := range append(j.takePosts(), entries...) {
		seq = j.append(e)
	}
	return seq
}

func (j *journal) takePosts() []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	posts := j.posts
	j.posts = nil
	return posts
}

func (j *journal) append(e entry) (seq int64) {
	seq, err := j.recorder.Append(j.ctx, e.kind, e.turnID, e.payload)
	if err != nil {
		j.warn.Do(func() {
			j.logger.Warn("agent_events_not_recorded", zap.String("kind", string(e.kind)), zap.Error(err))
		})
		return 0
	}
	return seq
}

// run records posts while the agent is silent, until stop is closed.
func (j *journal) run(stop <-chan struct{}) {
	for {
		select {
		case <-j.wake:
			j.record()
		case <-stop:
			return
		}
	}
}
