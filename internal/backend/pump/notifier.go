package pump

import "sync"

// Notifier wakes readers of sessions whose committed events changed. It carries
// no data and never waits for a reader: a wake-up that is still pending stands for
// all that follow.
type Notifier struct {
	mu      sync.Mutex
	readers map[string]map[chan struct{}]struct{}
}

// NewNotifier returns a notifier without readers.
func NewNotifier() *Notifier {
	return &Notifier{readers: make(map[string]map[chan struct{}]struct{})}
}

// Changed wakes every reader of the session.
func (n *Notifier) Changed(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for wake := range n.readers[session] {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// Subscribe returns a channel that receives after every change from now on, and
// the function that ends the subscription.
func (n *Notifier) Subscribe(session string) (<-chan struct{}, func()) {
	wake := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.readers[session] == nil {
		n.readers[session] = make(map[chan struct{}]struct{})
	}
	n.readers[session][wake] = struct{}{}
	return wake, func() { n.unsubscribe(session, wake) }
}

func (n *Notifier) unsubscribe(session string, wake chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.readers[session], wake)
	if len(n.readers[session]) == 0 {
		delete(n.readers, session)
	}
}
