package counters

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The series that are no counters and write no log line.
const (
	lagName    = prefix + "event_commit_lag_seconds"
	commitName = prefix + "event_commit_seconds"
)

func newLag() prometheus.Histogram {
	return newTimes(lagName, "Time from an event's arrival at the control server until it was committed.")
}

func newCommit() prometheus.Histogram {
	return newTimes(commitName, "Time that a transaction took which sessions share for their events.")
}

// newTimes returns a histogram from 0.1 ms to over a minute. Its buckets are
// narrow, so that a quantile is off by a few percent, over any stretch of time.
func newTimes(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0001, 1.2, 76),
	})
}

// EventCommitted notes that an event was committed, which its control server had
// stamped at the given time.
func (c *Counters) EventCommitted(at, now time.Time) { c.lag.Observe(now.Sub(at).Seconds()) }

// EventsWritten notes how long a transaction took that sessions share for their
// events.
func (c *Counters) EventsWritten(took time.Duration) { c.commit.Observe(took.Seconds()) }
