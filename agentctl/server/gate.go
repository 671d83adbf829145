package server

import (
	"net/http"
	"sync"

	"github.com/kandev/recovery/agentctl/wire"
)

// gate counts the requests being served, streams included, and lets no more in
// once it is shut.
type gate struct {
	answers answers
	next    http.Handler

	mu     sync.Mutex
	inside int
	shut   bool
	empty  chan struct{} // closed once the gate is shut and nobody is inside
}

func newGate(a answers, next http.Handler) *gate {
	return &gate{answers: a, next: next, empty: make(chan struct{})}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.enter() {
		g.answers.refuse(w, &wire.Error{Code: wire.CodeShuttingDown, Message: "the control server is ending"})
		return
	}
	defer g.leave()
	g.next.ServeHTTP(w, r)
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.settle()
}

// close shuts the gate, once, and returns what is closed when nobody is inside.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	g.settle()
	return g.empty
}

// settle runs under the lock. The last one out of a shut gate comes by once.
func (g *gate) settle() {
	if g.shut && g.inside == 0 {
		close(g.empty)
	}
}
