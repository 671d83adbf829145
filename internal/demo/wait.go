package demo

import (
	"context"
	"fmt"
	"time"
)

// unmetError: something that was promised did not come about in time.
type unmetError struct {
	what   string
	limit  time.Duration
	detail string
}

func (e *unmetError) Error() string {
	return fmt.Sprintf("%s did not happen within %s (%s)", e.what, e.limit, e.detail)
}

const progressInterval = 2 * time.Second

// pollInterval is longer with many agents: asking for all of them has its price.
func pollInterval(agents int) time.Duration {
	return max(25*time.Millisecond, time.Duration(agents)*2*time.Millisecond)
}

// await polls until the check says that it is done. What the check tells
// besides is shown now and then, so that the reader sees that it works.
func (r *run) await(ctx context.Context, what string, limit time.Duration, check func(context.Context) (done bool, detail string, err error)) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval(len(r.sessions)))
	defer tick.Stop()
	shown, last := time.Now(), ""
	for {
		done, detail, err := check(ctx)
		if err != nil {
			return fmt.Errorf("waiting for: %s: %w", what, err)
		}
		if done {
			return nil
		}
		if detail != last && time.Since(shown) >= progressInterval {
			r.say("  %s: %s", what, detail)
			shown, last = time.Now(), detail
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return &unmetError{what: what, limit: limit, detail: detail}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitAll is await over sessions, as the backend shows them.
func (r *run) awaitAll(ctx context.Context, what string, limit time.Duration, check func(*session, view) bool) error {
	return r.await(ctx, what, limit, func(ctx context.Context) (bool, string, error) {
		views, err := r.views(ctx)
		if err != nil {
			return false, "", err
		}
		done, waiting := 0, ""
		for _, s := range r.sessions {
			v, known := views[s.id]
			if known && check(s, v) {
				done++
			} else if waiting == "" {
				waiting = fmt.Sprintf("; %s (%s) is %s", s.id, s.kind, v.describe())
			}
		}
		return done == len(r.sessions), fmt.Sprintf("%d of %d%s", done, len(r.sessions), waiting), nil
	})
}

// awaitAgents is await over the agents' own records.
func (r *run) awaitAgents(ctx context.Context, what string, limit time.Duration, check func(*session, produced) bool) error {
	return r.await(ctx, what, limit, func(context.Context) (bool, string, error) {
		trees, err := r.record.byTree()
		if err != nil {
			return false, "", err
		}
		done := 0
		for _, s := range r.sessions {
			if check(s, trees[s.tree].Produced()) {
				done++
			}
		}
		return done == len(r.sessions), fmt.Sprintf("%d of %d", done, len(r.sessions)), nil
	})
}
