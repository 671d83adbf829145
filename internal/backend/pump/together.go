package pump

import (
	"context"
	"slices"
	"sync"

	"github.com/kandev/recovery/internal/crashpoint"
	"github.com/kandev/recovery/store"
)

const (
	// flights is how many transactions that pumps share are under way at most: one
	// is prepared while another is flushed. What comes meanwhile is the next one.
	flights = 2
	// Bounds of one such transaction; a single batch may exceed them.
	flightEvents = 512
	flightBytes  = 1 << 20
)

// together commits what pumps have waiting in transactions that they share. With
// few agents or little to say each gets one of its own, at once; with many, those
// that come during a commit share the next.
//
// No session depends on another for more than one attempt: what a shared
// transaction does not take, or failed with, its pump commits alone.
type together struct {
	cfg  Config
	life context.Context

	mu       sync.Mutex
	waiting  []*passenger
	underWay int
	landed   sync.WaitGroup
}

// passenger is one pump's batch.
type passenger struct {
	ctx      context.Context // its pump's
	batch    store.Batch
	bytes    int
	landed   chan struct{} // closed when the rest is known
	appended bool
	err      error
}

// commit writes the batch durably, with those of other pumps, or alone if that is
// not possible. The error is the journal's or ctx's, with which it is not known
// whether the batch was written.
func (t *together) commit(ctx context.Context, b store.Batch) (committed int64, err error) {
	p := &passenger{ctx: ctx, batch: b, landed: make(chan struct{})}
	for _, e := range b.Events {
		p.bytes += len(e.Payload)
	}
	t.board(p)
	select {
	case <-p.landed:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	switch {
	case p.err != nil:
		return 0, p.err
	case p.appended:
		return b.Events[len(b.Events)-1].Seq, nil
	default:
		return t.cfg.Journal.CommitEvents(ctx, b)
	}
}

func (t *together) board(p *passenger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, p)
	if t.underWay < flights {
		t.underWay++
		t.landed.Go(t.fly)
	}
}

// fly takes those who wait until nobody does.
func (t *together) fly() {
	for {
		group := t.next()
		if len(group) == 0 {
			return
		}
		t.carry(group)
	}
}

func (t *together) carry(group []*passenger) {
	ctx, cancel := context.WithTimeout(t.life, t.cfg.SharedFor)
	defer cancel()
	batches := make([]store.Batch, len(group))
	for i, p := range group {
		batches[i] = p.batch
	}
	began := t.cfg.Clock()
	appended, err := t.cfg.Journal.AppendTogether(ctx, batches)
	t.cfg.Written(t.cfg.Clock().Sub(began))
	if len(group) > 1 {
		crashpoint.Hit("pump.after_shared_commit")
	}
	for i, p := range group {
		p.err = err
		p.appended = err == nil && appended[i]
		close(p.landed)
	}
}

// next is the first of those who wait, and as many more as the bounds allow. A
// pump that was stopped meanwhile has nothing written any more.
func (t *together) next() (group []*passenger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(p *passenger) bool { return p.ctx.Err() != nil })
	events, bytes := 0, 0
	for _, p := range t.waiting {
		events, bytes = events+len(p.batch.Events), bytes+p.bytes
		if len(group) > 0 && (events > flightEvents || bytes > flightBytes) {
			break
		}
		group = append(group, p)
	}
	t.waiting = slices.Delete(t.waiting, 0, len(group))
	if len(group) == 0 {
		t.underWay--
	}
	return group
}
