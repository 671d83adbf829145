package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kandev/recovery/recovery"
)

// atOnce bounds the requests in flight of the baseline: as many as the recovery
// pass works on at once.
const atOnce = 50

// recoveries measures the recovery of survivors: the time from the start of a
// backend's process until it has published every session, beside the same reads
// by a plain Go program.
func recoveries(ctx context.Context, w *world, _ map[string]bool) error {
	for _, n := range w.opts.Survivors {
		r, err := w.recovery(ctx, n)
		if err != nil {
			return err
		}
		w.found(r)
	}
	return nil
}

func (w *world) recovery(ctx context.Context, n int) (Result, error) {
	if err := w.grow(ctx, n); err != nil {
		return Result{}, err
	}
	w.say("killing the backend and starting it again with %d survivors", n)
	status, err := w.restart(ctx)
	if err != nil {
		return Result{}, err
	}
	if got := status.Recovery.Counts[recovery.OutcomeRetracked]; got != n {
		return Result{}, fmt.Errorf("%d of %d sessions were re-tracked: %v", got, n, status.Recovery.Counts)
	}
	took := status.StartedAt.Add(time.Duration(status.Recovery.FinishedAfterMS) * time.Millisecond).Sub(w.Backend.StartedAt)
	plain, err := w.plainReads(ctx)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Benchmark: Recovery, N: n, Unit: unitSeconds, Value: took.Seconds(),
		Baseline: fmt.Sprintf("the same reads, %d goroutines", atOnce), BaselineValue: plain.Seconds(),
		Ratio: took.Seconds() / plain.Seconds(),
	}, nil
}

// plainReads reads per session what the recovery pass reads, with nothing
// durable in between.
func (w *world) plainReads(ctx context.Context) (time.Duration, error) {
	peers, err := w.peers(ctx)
	if err != nil {
		return 0, err
	}
	defer peers.close()
	began := time.Now()
	instances, err := peers.control.List(ctx)
	if err != nil {
		return 0, fmt.Errorf("enumerate: %w", err)
	}
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(atOnce)
	for _, in := range instances {
		reads.Go(func() error { return peers.observe(ctx, in.SessionID, in.ID) })
	}
	err = reads.Wait()
	return time.Since(began), err
}
