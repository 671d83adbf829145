package events

import "sync"

// Budget bounds the bytes that all logs of one control server hold together
// (B-8). It is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	total int64
	used  int64
	freed chan struct{} // closed at the next release
}

// NewBudget returns a budget of total bytes.
func NewBudget(total int64) *Budget {
	return &Budget{total: total, freed: make(chan struct{})}
}

// Used returns the bytes held now. It exceeds the total by at most one event
// for every attached log.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// reserve takes n bytes, or returns a channel that is closed once asking again
// makes sense. With force it always takes them.
func (b *Budget) reserve(n int64, force bool) (freed <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !force && b.used+n > b.total {
		return b.freed, false
	}
	b.used += n
	return nil, true
}

func (b *Budget) release(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	close(b.freed)
	b.freed = make(chan struct{})
}
