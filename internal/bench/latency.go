package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/userapi"
)

const (
	// lightly is the part of the full throughput at which latency is measured.
	lightly = 10
	// measuredFor is how long that load lasts.
	measuredFor = 5 * time.Second
	// warmUp is the part of the load that goes before: too little to be seen in a
	// quantile.
	warmUp = 500
	// single is how many commits of one row are timed.
	single = 300
)

// latency measures how long updates take from the agent's write to the commit,
// at a tenth of the throughput, beside the baseline at the same load and the
// commit of a single row.
//
// Nothing reads along, which would take a good part of two cores. The time has
// two parts, and each is known from where it passes anyway: until the control
// server has the update, by the agent's stamp in the payload and the server's in
// the row; from there until after the commit, by the backend's own summary. Of
// each part the 99.5th percentile is taken: at most one update in a hundred
// takes longer than their sum, however the parts go together.
func (e *events) latency(ctx context.Context, full load, rate float64) error {
	l := lighter(full, rate)
	e.say("streaming an update of %d bytes every %s from each of %d agents", l.size, l.every, l.n)
	commit, err := e.commitTime(ctx)
	if err != nil {
		return err
	}
	p50, p99, err := e.paced(ctx, l)
	if err != nil {
		return err
	}
	base, err := e.plainRound(ctx, l)
	if err != nil {
		return err
	}
	base50, base99 := quantile(base.updates, 0.5), quantile(base.updates, 0.99)
	const ms = 1000
	e.found(Result{
		Benchmark: fmt.Sprintf("%s of %d B, p99", Latency, l.size), N: l.n, Unit: unitSeconds, Value: p99,
		Baseline: plainProgram, BaselineValue: base99, Ratio: p99 / base99,
		Figures: []Figure{
			{"a row's commit", ms * commit, "ms"}, {"p99 in commits", p99 / commit, ""}, {"baseline's", base99 / commit, ""},
			{"p50", ms * p50, "ms"}, {"baseline's", ms * base50, "ms"}, {"load", rate / lightly, unitPerSecond},
		},
	})
	return nil
}

// paced streams the load through a backend of its own, and returns quantiles of
// the time that updates took, in seconds.
func (e *events) paced(ctx context.Context, l load) (p50, p99 float64, err error) {
	// The summary is the process's: a new one has seen nothing else. What it does
	// for the first time, such as opening connections, is not what is measured.
	if _, err := e.restart(ctx); err != nil {
		return 0, 0, err
	}
	first := l
	first.count = max(1, l.count/warmUp)
	if _, err := e.round(ctx, first); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if _, err := e.round(ctx, l); err != nil {
		return 0, 0, err
	}
	arrivals, err := e.arrivals(ctx, began)
	if err != nil {
		return 0, 0, err
	}
	lag, err := e.commitLag(ctx)
	return quantile(arrivals, 0.5) + lag[0.5], quantile(arrivals, 0.995) + lag[0.995], err
}

// lighter is the load at a tenth of the rate.
func lighter(full load, rate float64) load {
	l := load{n: full.n, size: full.size}
	l.every = time.Duration(float64(l.n) * lightly / rate * float64(time.Second))
	l.count = max(1, min(int(measuredFor/l.every), full.count))
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
func (e *events) arrivals(ctx context.Context, since time.Time) ([]float64, error) {
	rows, err := e.db.Query(ctx, `
		SELECT at, payload FROM agent_events WHERE installation_id = $1 AND kind = $2 AND at >= $3`,
		e.installation, string(wire.EventUpdate), since)
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

// commitLag scrapes the backend's summary: quantile and seconds.
func (e *events) commitLag(ctx context.Context) (map[float64]float64, error) {
	token, err := home.ReadToken(e.Home())
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.Backend.Address+userapi.RouteMetrics, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the backend's metrics: %w", err)
	}
	lag, err := readSummary(resp.Body, "kandev_recovery_event_commit_lag_seconds")
	return lag, errors.Join(err, resp.Body.Close())
}

// readSummary finds a summary's quantiles in Prometheus' text format.
func readSummary(text io.Reader, name string) (map[float64]float64, error) {
	found := make(map[float64]float64)
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name+`{quantile="`)
		if !ok {
			continue
		}
		label, number, _ := strings.Cut(rest, `"} `)
		q, errLabel := strconv.ParseFloat(label, 64)
		v, errNumber := strconv.ParseFloat(number, 64)
		if err := errors.Join(errLabel, errNumber); err != nil {
			return nil, fmt.Errorf("unreadable metrics: %w", err)
		}
		found[q] = v
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no summary %s in the backend's metrics", name)
	}
	return found, lines.Err()
}
