package bench

import (
	"context"
	"slices"
	"time"
)

// mostDrained is how many agents leave a backlog at most.
const mostDrained = 10

// drain measures how fast a backlog is committed that agents left while no
// backend was there.
func (e *events) drain(ctx context.Context) error {
	n := min(mostDrained, slices.Max(e.opts.Instances))
	if err := e.grow(ctx, n); err != nil {
		return err
	}
	// A turn's start and its end count towards the limit.
	l := load{n: n, count: max(1, min(e.opts.Events/n, detachedLimit-2)), size: smallUpdate}
	e.say("leaving %d updates from each of %d agents without a backend", l.count, l.n)
	took, err := e.backlog(ctx, l)
	if err != nil {
		return err
	}
	base, err := e.plainRound(ctx, l)
	if err != nil {
		return err
	}
	e.found(perSecond(Drain, l, took, base.took))
	return nil
}

// backlog returns the time from the first commit of the backlog to its last.
func (e *events) backlog(ctx context.Context, l load) (time.Duration, error) {
	gate := e.gate()
	after, err := e.promptAll(ctx, l, gate)
	if err != nil {
		return 0, err
	}
	server, err := e.world.peers(ctx) // the credential that is in use now
	if err != nil {
		return 0, err
	}
	defer server.close()
	if err := e.Backend.Kill(); err != nil {
		return 0, err
	}
	before, err := e.committed(ctx)
	if err != nil {
		return 0, err
	}
	if err := openGate(gate)(); err != nil {
		return 0, err
	}
	if err := server.awaitTurnsEnded(ctx); err != nil {
		return 0, err
	}
	return e.drainTime(ctx, before, after)
}

// awaitTurnsEnded waits, by the control server, until agents have said all.
func (p *peers) awaitTurnsEnded(ctx context.Context) error {
	return await(ctx, "the backlog is complete", func(ctx context.Context) (bool, error) {
		instances, err := p.control.List(ctx)
		open := 0
		for _, in := range instances {
			if in.OpenTurnID != "" {
				open++
			}
		}
		return open == 0, err
	})
}

// drainTime starts a backend and follows what it commits.
func (e *events) drainTime(ctx context.Context, before, after int64) (time.Duration, error) {
	var began time.Time
	followed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		followed <- await(ctx, "the backlog is committed", func(ctx context.Context) (bool, error) {
			now, err := e.committed(ctx)
			if now == before {
				began = time.Now()
			}
			return now == after, err
		})
	}()
	if _, err := e.startBackend(ctx); err != nil {
		cancel()
		<-followed
		return 0, err
	}
	err := <-followed
	return time.Since(began), err
}
