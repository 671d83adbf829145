package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kandev/recovery/userapi"
)

// Bounds of an update's size in bytes. The smallest is the size that the number
// of events is meant for.
const (
	smallUpdate = 200
	maxUpdate   = 4 << 20
	// heavier is how many times the bytes of a round of small updates a round of
	// large ones may have.
	heavier = 2
)

// events are the measurements of the event plane that share agents.
type events struct {
	*world
	*peers
	rounds int // so far; names the files and the prompts
}

func eventPlane(ctx context.Context, w *world, wanted map[string]bool) error {
	peers, err := w.peers(ctx)
	if err != nil {
		return err
	}
	defer peers.close()
	e := &events{world: w, peers: peers}
	if wanted[Drain] {
		if err := e.drain(ctx); err != nil {
			return err
		}
	}
	if !wanted[Throughput] && !wanted[Latency] {
		return nil
	}
	for _, n := range w.opts.Instances {
		for _, size := range w.opts.Sizes {
			if err := e.attached(ctx, n, size, wanted[Latency]); err != nil {
				return err
			}
		}
	}
	return nil
}

// load is what every one of n agents is asked for.
type load struct {
	n, count, size int
	every          time.Duration
}

// script is what agent i of n does. Paced agents take turns, as agents do that
// know nothing of each other: in step they would be a burst, and its end late.
func (l load) script(gate string, i int) string {
	script := fmt.Sprintf("wait file %s; flood %d size %dB", gate, l.count, l.size)
	if l.every > 0 {
		script += fmt.Sprintf(" every %s after %s", l.every, l.every*time.Duration(i)/time.Duration(l.n))
	}
	return script
}

// total is the number of updates.
func (l load) total() int { return l.n * l.count }

// fullLoad is the load of one round of throughput.
func (o Options) fullLoad(n, size int) load {
	total := min(o.Events, heavier*o.Events*smallUpdate/size)
	return load{n: n, count: max(1, total/n), size: size}
}

// attached measures the throughput of n agents with updates of a size, ours and
// the baseline's in turn, and at a tenth of it the latency.
func (e *events) attached(ctx context.Context, n, size int, latency bool) error {
	if err := e.grow(ctx, n); err != nil {
		return err
	}
	l := e.opts.fullLoad(n, size)
	e.say("streaming %d updates of %d bytes from each of %d agents, %d times", l.count, l.size, n, e.opts.Rounds)
	ours, base, err := e.sideBySide(ctx, l)
	if err != nil {
		return err
	}
	r := perSecond(fmt.Sprintf("%s of %d B", Throughput, size), l, ours, base)
	e.found(r)
	if !latency {
		return nil
	}
	return e.latency(ctx, l, r.Value)
}

const plainProgram = "a program that reads the agents' pipes and inserts"

// perSecond compares two times of the same load as rates.
func perSecond(benchmark string, l load, ours, base time.Duration) Result {
	events, mib := float64(l.total()), float64(l.total()*l.size)/(1<<20)
	return Result{
		Benchmark: benchmark, N: l.n, Unit: unitPerSecond, Value: events / ours.Seconds(),
		Baseline: plainProgram, BaselineValue: events / base.Seconds(), Ratio: base.Seconds() / ours.Seconds(),
		Figures: []Figure{{"payload", mib / ours.Seconds(), "MiB/s"}, {"baseline's", mib / base.Seconds(), "MiB/s"}},
	}
}

// sideBySide returns the median times of the load.
func (e *events) sideBySide(ctx context.Context, l load) (ours, base time.Duration, err error) {
	var all, plain []time.Duration
	for range e.opts.Rounds {
		took, err := e.round(ctx, l)
		if err != nil {
			return 0, 0, err
		}
		all = append(all, took)
		base, err := e.plainRound(ctx, l)
		if err != nil {
			return 0, 0, err
		}
		plain = append(plain, base.took)
	}
	return median(all), median(plain), nil
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// gate is a file whose appearance has every agent begin.
func (e *events) gate() string {
	e.rounds++
	return filepath.Join(e.Dir, fmt.Sprintf("gate-%d", e.rounds))
}

func openGate(file string) func() error {
	return func() error { return os.WriteFile(file, nil, 0o644) }
}

// round streams the load through the product, and returns the time from the
// moment at which the agents begin until everything is committed.
func (e *events) round(ctx context.Context, l load) (time.Duration, error) {
	after, began, err := e.begin(ctx, l)
	if err != nil {
		return 0, err
	}
	if err := e.awaitCommitted(ctx, after); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, e.idle(ctx)
}

// begin has the agents begin all at once, and returns when, and how many events
// will be committed once they are done.
func (e *events) begin(ctx context.Context, l load) (after int64, began time.Time, err error) {
	gate := e.gate()
	if after, err = e.promptAll(ctx, l, gate); err != nil {
		return 0, began, err
	}
	err = openGate(gate)()
	return after, time.Now(), err
}

// promptAll has the agents wait at the gate, and returns how many events will be
// committed once they have done what they are asked for.
func (e *events) promptAll(ctx context.Context, l load, gate string) (after int64, err error) {
	before, err := e.committed(ctx)
	if err != nil {
		return 0, err
	}
	prompts, limited := errgroup.WithContext(ctx)
	prompts.SetLimit(8)
	for i, s := range e.sessions[:l.n] {
		prompts.Go(func() error { return e.prompt(limited, s, filepath.Base(gate), l.script(gate, i)) })
	}
	if err := prompts.Wait(); err != nil {
		return 0, err
	}
	// A turn's start and its end are events as well.
	started := before + int64(l.n)
	return started + int64(l.total()+l.n), e.awaitCommitted(ctx, started)
}

func (e *events) prompt(ctx context.Context, s userapi.Session, key, text string) error {
	if _, err := e.Backend.Client.Prompt(ctx, s.ID, key, text); err != nil {
		return fmt.Errorf("prompt session %s: %w", s.ID, err)
	}
	return nil
}

// baseline is what a round of the baseline gave.
type baseline struct {
	opened  time.Time // when its agents began
	took    time.Duration
	updates []sample // of a paced load
	commits []sample // of a paced load
}

// plainRound streams the load through the baseline.
func (e *events) plainRound(ctx context.Context, l load) (_ baseline, err error) {
	gate := e.gate()
	p, err := e.newPlain(ctx, e.db, "plain-"+filepath.Base(gate), l.n)
	if err != nil {
		return baseline{}, err
	}
	p.timed = l.every > 0
	took, err := p.round(ctx, func(i int) string { return l.script(gate, i) }, l.size, openGate(gate))
	if closed := p.close(); err == nil {
		err = closed
	}
	return baseline{p.opened, took, p.updates, p.commits}, err
}
