package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/agentctl/wire"
)

const (
	// lightly is the part of the full throughput at which latency is measured.
	lightly = 10
	// measuredFor is how long that load lasts.
	measuredFor = 8 * time.Second
	// fewest is how many updates of an agent can be measured.
	fewest = 16
	// single is how many commits of one row are timed.
	single = 300
)

// latency measures how long updates take from the agent's write to the commit,
// at a tenth of the throughput, beside the baseline at the same load, and how
// long commits take: of a single row while nothing else goes on, and those of
// either program under that load.
//
// Nothing reads along, which would take a good part of two cores. The time has
// two parts, and each is known from where it passes anyway: until the control
// server has the update, by the agent's stamp in the payload and the server's in
// the row; from there until after the commit, by the backend's own histogram.
func (e *events) latency(ctx context.Context, full load, rate float64) error {
	l := lighter(full, rate)
	e.say("streaming an update of %d bytes every %s from each of %d agents", l.size, l.every, l.n)
	commit, err := e.commitTime(ctx)
	if err != nil {
		return err
	}
	ours, err := e.paced(ctx, l)
	if err != nil {
		return err
	}
	base, err := e.pacedPlain(ctx, l)
	if err != nil {
		return err
	}
	const ms = 1000
	e.found(Result{
		Benchmark: fmt.Sprintf("%s of %d B, p99", Latency, l.size), N: l.n, Unit: unitSeconds, Value: ours.p99,
		Baseline: plainProgram, BaselineValue: base.p99, Ratio: ours.p99 / base.p99,
		Figures: []Figure{
			{"p50", ms * ours.p50, "ms"}, {"baseline's", ms * base.p50, "ms"}, {"load", rate / lightly, unitPerSecond},
			{"the baseline's commits under it, p99", ms * base.commit99, "ms"}, {"ours", ms * ours.commit99, "ms"},
			{"p99 in commits of the baseline under it", ours.p99 / base.commit99, ""}, {"baseline's", base.p99 / base.commit99, ""},
			{"a row's commit alone", ms * commit, "ms"}, {"p99 in commits alone", ours.p99 / commit, ""},
			{"baseline's", base.p99 / commit, ""},
		},
	})
	return nil
}

// times are quantiles, in seconds, of what updates and commits took.
type times struct{ p50, p99, commit99 float64 }

// window is the stretch of a load that counts: the agents' beginning, and the
// ends of their turns, are bursts of their own.
type window struct{ from, to time.Time }

// margin is the part of a load that is left out on either side.
const margin = 8

func (l load) lasts() time.Duration { return l.every * time.Duration(l.count) }

func (l load) window(opened time.Time) window {
	aside := l.lasts() / margin
	return window{opened.Add(aside), opened.Add(l.lasts() - aside)}
}

// paced streams the load through the product.
func (e *events) paced(ctx context.Context, l load) (t times, err error) {
	if err := e.recycle(ctx); err != nil {
		return t, err
	}
	after, began, err := e.begin(ctx, l)
	if err != nil {
		return t, err
	}
	w := l.window(began)
	before, err := e.scrapeAt(ctx, w.from)
	if err != nil {
		return t, err
	}
	now, err := e.scrapeAt(ctx, w.to)
	if err != nil {
		return t, err
	}
	if err := e.awaitCommitted(ctx, after); err != nil {
		return t, err
	}
	arrivals, err := e.arrivals(ctx, w)
	if err != nil {
		return t, err
	}
	lag, commits := now.lag.since(before.lag), now.commits.since(before.commits)
	return times{
		p50: quantile(arrivals, 0.5) + lag.quantile(0.5), p99: sum99(arrivals, lag), commit99: commits.quantile(0.99),
	}, e.idle(ctx)
}

func (e *events) scrapeAt(ctx context.Context, at time.Time) (scraped, error) {
	select {
	case <-time.After(time.Until(at)):
		return e.scrape(ctx)
	case <-ctx.Done():
		return scraped{}, ctx.Err()
	}
}

// sum99 is a time that at most one update in a hundred exceeds, however its parts
// go together: the lowest over twenty ways to divide that one between them.
func sum99(arrivals []float64, lag histogram) float64 {
	lowest := math.Inf(1)
	for i := range 21 {
		late := float64(i) / 2000 // this part of them may arrive later
		lowest = min(lowest, quantile(arrivals, 1-late)+lag.quantile(0.99+late))
	}
	return lowest
}

// pacedPlain streams the load through the baseline.
func (e *events) pacedPlain(ctx context.Context, l load) (times, error) {
	if err := e.recycle(ctx); err != nil {
		return times{}, err
	}
	base, err := e.plainRound(ctx, l)
	w := l.window(base.opened)
	updates, commits := w.of(base.updates), w.of(base.commits)
	return times{
		p50: quantile(updates, 0.5), p99: quantile(updates, 0.99), commit99: quantile(commits, 0.99),
	}, err
}

// recycle has Postgres keep the files of its log to write them again, as it does
// once it has run for some minutes. To make a new one takes as long as a hundred
// commits.
func (e *events) recycle(ctx context.Context) error {
	if _, err := e.db.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("recycle the log of Postgres: %w", err)
	}
	return nil
}

// lighter is the load at a tenth of the rate.
func lighter(full load, rate float64) load {
	l := load{n: full.n, size: full.size}
	l.every = time.Duration(float64(l.n) * lightly / rate * float64(time.Second))
	l.count = max(fewest, min(int(measuredFor/l.every), full.count))
	return l
}

// commitTime is the median of single-row transactions, one after another, in
// seconds.
func (e *events) commitTime(ctx context.Context) (float64, error) {
	e.rounds++
	name := fmt.Sprintf("single-%d", e.rounds)
	times := make([]float64, single)
	payload := strings.Repeat("x", smallUpdate)
	for i := range times {
		began := time.Now()
		if err := insert(ctx, e.db, name, int64(i), []row{{began, payload}}); err != nil {
			return 0, err
		}
		times[i] = time.Since(began).Seconds()
	}
	return quantile(times, 0.5), nil
}

// arrivals returns, in seconds, how long updates took from the agents' write to
// the control server.
func (e *events) arrivals(ctx context.Context, w window) ([]float64, error) {
	rows, err := e.db.Query(ctx, `
		SELECT at, payload FROM agent_events WHERE installation_id = $1 AND kind = $2 AND at BETWEEN $3 AND $4`,
		e.installation, string(wire.EventUpdate), w.from, w.to)
	if err != nil {
		return nil, fmt.Errorf("read what was committed: %w", err)
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (float64, error) {
		var at time.Time
		var payload string
		if err := r.Scan(&at, &payload); err != nil {
			return 0, err
		}
		written, err := writtenAt(payload)
		return at.Sub(written).Seconds(), err
	})
}

// quantile returns a value that this part of the values does not exceed.
func quantile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[min(int(math.Ceil(part*float64(len(values))))-1, len(values)-1)]
}
