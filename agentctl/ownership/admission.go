package ownership

import (
	"context"
	"fmt"
	"sync"
)

// Kind tells requests, which end by themselves, from streams, which do not.
type Kind int

// Kinds of admissions.
const (
	Request Kind = iota
	Stream
)

// Admission is the permission of one request or stream to act under the newest
// credential. Its holder calls Release once nothing of it can take effect any
// more.
type Admission struct {
	kind     Kind
	revoked  context.Context
	revoke   context.CancelFunc
	released chan struct{}
	release  func()
}

// Context ends when the credential is superseded (O-002.2) or the admission is
// released. Rotation waits for the release.
func (m *Admission) Context() context.Context { return m.revoked }

// Bind returns a context that ends with parent and with the admission.
func (m *Admission) Bind(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	detach := context.AfterFunc(m.revoked, cancel)
	return ctx, func() { detach(); cancel() }
}

// Release ends the admission. It may be repeated.
func (m *Admission) Release() { m.release() }

// Check says whether the credential drives now. Acting on the answer takes an
// Admission.
func (a *Authority) Check(token string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requireNewest(token)
}

// Admit lets one request or stream of the newest credential act. Under the same
// lock it is entered among those that the next rotation ends, so that none
// slips through between the two (O-002.2). Nothing is admitted once a shutdown
// is decided.
func (a *Authority) Admit(token string, kind Kind) (*Admission, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.requireNewest(token); err != nil {
		return nil, err
	}
	if a.deciding() {
		return nil, errShuttingDown()
	}
	m := &Admission{kind: kind, released: make(chan struct{})}
	m.revoked, m.revoke = context.WithCancel(context.Background())
	m.release = sync.OnceFunc(func() {
		a.mu.Lock()
		delete(a.admitted, m)
		a.mu.Unlock()
		m.revoke()
		close(m.released)
	})
	a.admitted[m] = struct{}{}
	return m, nil
}

// revoke cancels all that is admitted and returns it. The caller holds the
// lock.
func (a *Authority) revoke() []*Admission {
	earlier := make([]*Admission, 0, len(a.admitted))
	for m := range a.admitted {
		m.revoke()
		earlier = append(earlier, m)
	}
	return earlier
}

// Quiesce cancels the requests that were admitted before the shutdown was
// decided, and waits for them. Streams go on, so that they can deliver how
// their instances end. Called after the decision, it leaves nothing that could
// still start an instance.
func (a *Authority) Quiesce(ctx context.Context) error {
	a.mu.Lock()
	var requests []*Admission
	for m := range a.admitted {
		if m.kind == Request {
			m.revoke()
			requests = append(requests, m)
		}
	}
	a.mu.Unlock()
	return await(ctx, requests)
}

func await(ctx context.Context, admissions []*Admission) error {
	for _, m := range admissions {
		select {
		case <-m.released:
		case <-ctx.Done():
			return fmt.Errorf("wait for admitted requests: %w", ctx.Err())
		}
	}
	return nil
}
