package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// Names of the benchmarks, in the order in which they run.
const (
	Throughput = "throughput"
	Latency    = "latency"
	Drain      = "drain"
	Memory     = "memory"
	Recovery   = "recovery"
	// Events stands for all of the event plane.
	Events = "events"
)

// Names returns what Options.Only takes.
func Names() []string { return []string{Throughput, Latency, Drain, Memory, Recovery, Events} }

// Options of a run.
type Options struct {
	Only      []string // names of benchmarks; empty: all
	Survivors []int    // sizes of recovery, growing
	Instances []int    // sizes of throughput and latency, growing
	Sizes     []int    // bytes of an update, 200 or more
	Events    int      // updates of 200 B in one round, over all instances; larger ones are fewer
	Rounds    int      // of throughput; medians are reported
	Idle      int      // agents whose memory is measured
	Out       io.Writer
	Logger    *zap.Logger
}

// bound is how long one step may take.
const bound = 5 * time.Minute

// Run measures what the options select, prints it, and leaves nothing behind. An
// error comes with what was measured before.
func Run(ctx context.Context, opts Options) (*Report, error) {
	wanted, err := selected(opts.Only)
	if err != nil {
		return nil, err
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	report := NewReport()
	for _, group := range groups() {
		if !slices.ContainsFunc(group.names, func(name string) bool { return wanted[name] }) {
			continue
		}
		if err := group.measure(ctx, opts, wanted, report); err != nil {
			return report, errors.Join(err, report.Print(opts.Out))
		}
	}
	return report, report.Print(opts.Out)
}

// group is benchmarks that share one stack.
type group struct {
	names []string
	run   func(ctx context.Context, w *world, wanted map[string]bool) error
}

func groups() []group {
	return []group{
		{[]string{Throughput, Latency, Drain}, eventPlane},
		{[]string{Memory}, memory},
		{[]string{Recovery}, recoveries},
	}
}

func (g group) measure(ctx context.Context, opts Options, wanted map[string]bool, into *Report) (err error) {
	w, err := newWorld(opts, into)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close(ctx)) }()
	if err := w.prepare(ctx); err != nil {
		return err
	}
	return g.run(ctx, w, wanted)
}

func selected(only []string) (map[string]bool, error) {
	wanted := make(map[string]bool)
	for _, name := range only {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("there is no benchmark %q; there are %s", name, strings.Join(Names(), ", "))
		}
		wanted[name] = true
	}
	if wanted[Events] || len(only) == 0 {
		wanted[Throughput], wanted[Latency], wanted[Drain], wanted[Memory] = true, true, true, true
	}
	if len(only) == 0 {
		wanted[Recovery] = true
	}
	return wanted, nil
}

func (o Options) check() error {
	for _, size := range o.Sizes {
		if size < smallUpdate || size > maxUpdate {
			return fmt.Errorf("an update has %d to %d bytes, not %d", smallUpdate, maxUpdate, size)
		}
	}
	for _, list := range [][]int{o.Survivors, o.Instances} {
		if len(list) == 0 || list[0] < 1 || !slices.IsSorted(list) {
			return errors.New("numbers of agents are positive and grow")
		}
	}
	if o.Events < 1 || o.Rounds < 1 || o.Idle < 2 {
		return errors.New("at least one event, one round and two idle agents are measured")
	}
	return nil
}
