package instance

import (
	"sync"

	"github.com/kandev/recovery/agentctl/wire"
)

// turnBook knows an instance's turns: a key opens one turn ever (B-17), and the
// last outcome is kept until it is acknowledged by its turn id (S-004.1). That
// one turn at most is open is the conversation's to decide.
type turnBook struct {
	newID func() string

	mu      sync.Mutex
	byKey   map[string]string // turn ids
	openID  string            // empty if no turn is open
	openKey string
	kept    *wire.TurnOutcome
}

func newTurnBook(newID func() string) *turnBook {
	return &turnBook{newID: newID, byKey: map[string]string{}}
}

// known returns the turn that the key opened.
func (b *turnBook) known(key string) (wire.Turn, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, ok := b.byKey[key]
	return wire.Turn{TurnID: id, Open: ok && id == b.openID}, ok
}

// start opens the turn of a key that has none. An end reported during send
// waits, so that it finds the turn open. If send fails there is no turn, and the
// key can be used again.
func (b *turnBook) start(key string, send func(turnID string) error) (wire.Turn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.newID()
	if err := send(id); err != nil {
		return wire.Turn{}, err
	}
	b.byKey[key] = id
	b.openID, b.openKey = id, key
	return wire.Turn{TurnID: id, Open: true}, nil
}

// end keeps an outcome and closes its turn.
func (b *turnBook) end(outcome wire.TurnOutcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = &outcome
	if b.openID == outcome.TurnID {
		b.openID, b.openKey = "", ""
	}
}

// current returns the id and key of the open turn, empty if none is.
func (b *turnBook) current() (id, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.openID, b.openKey
}

// outcome returns a copy of the kept outcome; reading does not discard it
// (S-004.6).
func (b *turnBook) outcome() *wire.TurnOutcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		return nil
	}
	kept := *b.kept
	return &kept
}

// acknowledge discards the kept outcome if it is that turn's.
func (b *turnBook) acknowledge(turnID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept != nil && b.kept.TurnID == turnID {
		b.kept = nil
	}
}
