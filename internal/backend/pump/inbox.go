package pump

import (
	"context"
	"sync"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
)

// inbox holds what came over a stream until it is committed. It takes every
// frame off the connection at once: a slow commit must not look like a reader
// that has stalled, which costs an agent its permission request (S-001.9). It is
// bounded by the server, which sends at most two batches ahead of the
// acknowledgements.
type inbox struct {
	mu     sync.Mutex
	events []wire.Event
	end    error          // why the stream ended, after these events
	news   chan struct{}  // holds one token when there are some
	filled sync.WaitGroup // over when the stream has ended
}

func newInbox() *inbox { return &inbox{news: make(chan struct{}, 1)} }

// fill takes what comes until the stream or ctx ends.
func (in *inbox) fill(ctx context.Context, stream *client.EventStream) {
	for {
		events, err := stream.Next(ctx)
		in.put(events, err)
		if err != nil {
			return
		}
	}
}

func (in *inbox) put(events []wire.Event, end error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.events = append(in.events, events...)
	in.end = end
	select {
	case in.news <- struct{}{}:
	default:
	}
}

// take waits for events and returns all that have come, so that a commit takes
// whatever came during the one before. When there are none it returns why none
// will come.
func (in *inbox) take(ctx context.Context) ([]wire.Event, error) {
	for {
		if events, err := in.empty(); len(events) > 0 || err != nil {
			return events, err
		}
		select {
		case <-in.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (in *inbox) empty() ([]wire.Event, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	events := in.events
	in.events = nil
	if len(events) > 0 {
		return events, nil
	}
	return nil, in.end
}

// reason waits for the end of the stream and says why it came.
func (in *inbox) reason() error {
	in.filled.Wait()
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.end
}
