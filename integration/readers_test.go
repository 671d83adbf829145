package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/cli"
	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/userapi"
)

// reader has what one reader of a transcript was given, in that order, over all
// of its connections.
type reader struct {
	open func(ctx context.Context, after int64, each func(userapi.Event)) error

	mu   sync.Mutex
	seen []userapi.Event
}

func (r *reader) take(e userapi.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, e)
}

func (r *reader) events() []userapi.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]userapi.Event(nil), r.seen...)
}

// B-1: readers of a transcript go on where they were, from backend to backend,
// killed in the middle of a stream: by the position that they ask for, by the id
// that a browser repeats, and by the command that follows a session. Each gets
// what it has missed and what comes later, once and in order.
func TestReadersGoOnWithTheNextBackend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start().serving()
	a := w.agent("streams")
	readers := []*reader{
		{open: func(ctx context.Context, after int64, each func(userapi.Event)) error {
			return w.backend.client.Events(ctx, a.session, after, func(e userapi.Event) error { each(e); return nil })
		}},
		{open: func(ctx context.Context, after int64, each func(userapi.Event)) error {
			return browse(ctx, w.home, a.session, after, each)
		}},
	}
	follower := w.follow(a)
	a.prompt("one", "stream until file go every 2ms")
	for range 2 {
		attended(w, readers, w.backend.kill)
		w.start().serving()
	}
	attended(w, readers, func() {
		a.touch("go")
		a.ended("one")
		for _, r := range append(readers, follower) {
			w.eventually("a reader has everything", func() bool { return int64(len(r.events())) >= a.view().Position })
		}
		w.backend.kill()
	})
	w.start().serving()
	transcript := a.transcript()
	a.committedExactly(int64(len(transcript)))
	for _, r := range append(readers, follower) {
		require.Equal(t, transcript, r.events())
	}
}

// attended has every reader read on while something happens that ends their
// connections, once each has got something new.
func attended(w *world, readers []*reader, happens func()) {
	w.t.Helper()
	var all sync.WaitGroup
	for _, r := range readers {
		before := len(r.events())
		after := int64(0)
		if before > 0 {
			after = r.events()[before-1].Position
		}
		all.Go(func() {
			if err := r.open(w.t.Context(), after, r.take); err != nil {
				w.t.Log("a reader's connection ended:", err)
			}
		})
		w.eventually("a reader gets something new", func() bool { return len(r.events()) > before+20 })
	}
	happens()
	all.Wait()
}

// browse reads as a browser does, which repeats the last id in a header.
func browse(ctx context.Context, dir, session string, after int64, each func(userapi.Event)) error {
	runtime, err := home.ReadRuntime(dir)
	if err != nil {
		return err
	}
	token, err := home.ReadToken(dir)
	if err != nil {
		return err
	}
	target := "http://" + runtime.Address + strings.ReplaceAll(userapi.RouteEvents, "{id}", session)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		var e userapi.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		each(e)
	}
}

// follow is the command that shows a transcript as it grows, which finds the next
// backend by itself. It ends with the test.
func (w *world) follow(a *agent) *reader {
	w.t.Helper()
	r := &reader{}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var errOut bytes.Buffer
	running.Go(func() {
		args := []string{"--home", w.home, "--json", "session", "events", a.session, "--follow"}
		if code := cli.Run(ctx, args, &eventLines{each: r.take}, &errOut); code != 0 {
			w.t.Errorf("the follower ended with %d: %s", code, errOut.String())
		}
	})
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

// eventLines takes events as lines of JSON.
type eventLines struct {
	each    func(userapi.Event)
	partial []byte
}

func (l *eventLines) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		var e userapi.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return 0, err
		}
		l.partial = rest
		l.each(e)
	}
}
