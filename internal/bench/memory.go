package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/kandev/recovery/internal/home"
)

// warm is how many agents there are before the growth is measured, so that what
// the first ones need is not counted.
const warm = 10

// use is what the two processes hold, in bytes.
type use struct {
	agentctlHeap, agentctlResident, backendResident float64
}

// memory measures by how much the processes grow with every idle agent, beside
// a program that holds the pipes of as many agents.
func memory(ctx context.Context, w *world, _ map[string]bool) error {
	first := min(warm, w.opts.Idle-1)
	before, err := w.usedWith(ctx, first)
	if err != nil {
		return err
	}
	after, err := w.usedWith(ctx, w.opts.Idle)
	if err != nil {
		return err
	}
	plain, err := w.plainUse(ctx, w.opts.Idle)
	if err != nil {
		return err
	}
	per := func(before, after float64) float64 { return (after - before) / float64(w.opts.Idle-first) / (1 << 20) }
	heap := per(before.agentctlHeap, after.agentctlHeap)
	w.found(Result{
		Benchmark: "agentctl's live heap for each idle agent", N: w.opts.Idle, Unit: unitMiB, Value: heap,
		Baseline: "a program that holds the agents' pipes", BaselineValue: plain, Ratio: heap / plain,
		Figures: []Figure{
			{"agentctl's live heap", after.agentctlHeap / (1 << 20), unitMiB},
			{"resident", after.agentctlResident / (1 << 20), unitMiB},
			{"for each agent", per(before.agentctlResident, after.agentctlResident), unitMiB},
			{"backend resident", after.backendResident / (1 << 20), unitMiB},
			{"for each agent", per(before.backendResident, after.backendResident), unitMiB},
		},
	})
	return nil
}

// usedWith starts agents until there are n, and measures.
func (w *world) usedWith(ctx context.Context, n int) (u use, err error) {
	if err := w.grow(ctx, n); err != nil {
		return u, err
	}
	peers, err := w.peers(ctx)
	if err != nil {
		return u, err
	}
	defer peers.close()
	details, err := peers.control.Details(ctx)
	if err != nil {
		return u, fmt.Errorf("ask for agentctl's process: %w", err)
	}
	memory, err := peers.control.Memory(ctx)
	if err != nil {
		return u, fmt.Errorf("ask for agentctl's memory: %w", err)
	}
	place, err := home.ReadRuntime(w.Home())
	if err != nil {
		return u, err
	}
	u.agentctlHeap = float64(memory.LiveHeapBytes)
	if u.agentctlResident, err = resident(details.PID); err != nil {
		return u, err
	}
	u.backendResident, err = resident(place.PID)
	return u, err
}

// plainUse is the growth of our own live heap with every agent of the baseline,
// in MiB.
func (w *world) plainUse(ctx context.Context, n int) (_ float64, err error) {
	before := ownHeap()
	p, err := w.newPlain(ctx, nil, "idle", n)
	if err != nil {
		return 0, err
	}
	after := ownHeap()
	return (after - before) / float64(n) / (1 << 20), p.close()
}

func ownHeap() float64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return float64(live[0].Value.Uint64())
}

// resident is a process's resident size in bytes; 0 where the system has no
// /proc to tell it.
func resident(pid int) (float64, error) {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read a process's size: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib * 1024, err
		}
	}
	return 0, nil
}
