package bench

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// histogram counts values up to each limit, which grow; the last is infinite.
type histogram struct {
	limits []float64
	counts []uint64
}

// scraped are the backend's histograms, in seconds, since it began: of every event
// the time from its arrival at the control server until after its commit, and of
// every transaction that sessions share how long it took.
type scraped struct{ lag, commits histogram }

func (e *events) scrape(ctx context.Context) (s scraped, err error) {
	text, err := e.Backend.Client.Metrics(ctx)
	if err != nil {
		return s, fmt.Errorf("read the backend's metrics: %w", err)
	}
	if s.lag, err = readHistogram(text, "kandev_recovery_event_commit_lag_seconds"); err != nil {
		return s, err
	}
	s.commits, err = readHistogram(text, "kandev_recovery_event_commit_seconds")
	return s, err
}

// readHistogram finds a histogram in Prometheus' text format.
func readHistogram(text, name string) (h histogram, err error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return h, fmt.Errorf("unreadable metrics: %w", err)
	}
	for _, m := range families[name].GetMetric() {
		for _, b := range m.GetHistogram().GetBucket() {
			h.limits, h.counts = append(h.limits, b.GetUpperBound()), append(h.counts, b.GetCumulativeCount())
		}
	}
	if len(h.limits) == 0 {
		return h, fmt.Errorf("no histogram %s in the backend's metrics", name)
	}
	return h, nil
}

// since is what came after an earlier reading.
func (h histogram) since(before histogram) histogram {
	later := histogram{limits: h.limits, counts: make([]uint64, len(h.counts))}
	for i := range h.counts {
		later.counts[i] = h.counts[i] - before.counts[i]
	}
	return later
}

// quantile estimates a value that this part of the values does not exceed, within
// the width of a bucket.
func (h histogram) quantile(part float64) float64 {
	all := h.counts[len(h.counts)-1]
	wanted := part * float64(all)
	below, from := 0.0, 0.0
	for i, limit := range h.limits {
		count := float64(h.counts[i])
		if count >= wanted && all > 0 {
			if math.IsInf(limit, 1) {
				return from
			}
			return from + (limit-from)*(wanted-below)/(count-below)
		}
		below, from = count, limit
	}
	return math.NaN()
}
