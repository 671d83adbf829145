package counters

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// lagName is the one series that is no counter and writes no log line.
const lagName = prefix + "event_commit_lag_seconds"

// newLag returns a summary, because what matters are its quantiles as they are
// in this process; the buckets of a histogram are coarser than what is looked
// for. The key is a quantile, the value how far off it may be.
func newLag() prometheus.Summary {
	return prometheus.NewSummary(prometheus.SummaryOpts{
		Name:       lagName,
		Help:       "Time from an event's arrival at the control server until it was committed.",
		Objectives: map[float64]float64{0.5: 0.01, 0.99: 0.001, 0.995: 0.0005},
	})
}

// EventCommitted notes that an event was committed, which its control server had
// stamped at the given time.
func (c *Counters) EventCommitted(at, now time.Time) { c.lag.Observe(now.Sub(at).Seconds()) }
