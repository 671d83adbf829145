// Package counters counts what recovery decides in one boot of the backend, and
// writes one log line of a fixed message for every count (W-9). Activities may be
// repeated, so that a decision is counted once however often it is reported.
// Beside the counters it keeps how far the transcripts are behind the agents.
package counters

import (
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/kandev/recovery/recovery"
)

// Counters are those of one boot. They are safe for concurrent use. No label
// holds an id, so that their number is bounded; the log lines do.
type Counters struct {
	logger   *zap.Logger
	registry *prometheus.Registry
	counters map[string]*prometheus.CounterVec // by metric name
	lag      prometheus.Histogram
	commit   prometheus.Histogram

	mu   sync.Mutex
	seen map[decision]bool
}

// decision is what is counted once. Subject is a session, an instance or a
// server; pass is 0 where the decision is the boot's.
type decision struct {
	metric  string
	pass    int64
	subject string
}

// New returns counters that all stand at zero.
func New(logger *zap.Logger) *Counters {
	c := &Counters{
		logger: logger, registry: prometheus.NewRegistry(),
		counters: make(map[string]*prometheus.CounterVec), seen: make(map[decision]bool),
		lag: newLag(), commit: newCommit(),
	}
	c.registry.MustRegister(c.lag, c.commit)
	for _, m := range metrics() {
		var labels []string
		if m.label != "" {
			labels = []string{m.label}
		}
		counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + m.name, Help: m.help}, labels)
		c.registry.MustRegister(counter)
		c.counters[m.name] = counter
		if m.label == "" {
			counter.WithLabelValues()
		}
		for _, value := range m.values {
			counter.WithLabelValues(value)
		}
	}
	return c
}

// Handler answers with all counters, in the format that the request asks for.
func (c *Counters) Handler() http.Handler {
	return promhttp.HandlerFor(c.registry, promhttp.HandlerOpts{ErrorLog: zap.NewStdLog(c.logger)})
}

// AdoptionAttempted counts a pass that evaluates the recorded server in order to
// adopt it.
func (c *Counters) AdoptionAttempted(pass int64, server string) {
	c.once(decision{attempted.name, pass, server}, attempted, "",
		zap.Int64("pass", pass), zap.String("server_identity", server))
}

// PassJudged counts the verdict on the recorded server. Rotated says that this
// pass replaced its credential; without, a server that an earlier pass adopted is
// in use.
func (c *Counters) PassJudged(pass int64, verdict recovery.Verdict, reason recovery.RefusalReason, rotated bool) {
	switch {
	case verdict == recovery.VerdictAdoptable && rotated:
		c.once(decision{metric: adopted.name, pass: pass}, adopted, "", zap.Int64("pass", pass))
	case verdict == recovery.VerdictRefused, verdict == recovery.VerdictIncompatible:
		c.once(decision{metric: refused.name, pass: pass}, refused, string(reason), zap.Int64("pass", pass))
	}
}

// SessionSettled counts the outcome of a session in a pass. A re-tracked session
// without an instance was tracked by an earlier pass, which counted it. Detail
// is the outcome's; of a missing value it is the value's name.
func (c *Counters) SessionSettled(pass int64, session string, outcome recovery.SessionOutcome, instance, detail string) {
	m, label := metric{}, ""
	switch outcome {
	case recovery.OutcomeRetracked:
		if instance == "" {
			return
		}
		m = retracked
	case recovery.OutcomeMissingValue:
		m, label = missing, detail
	case recovery.OutcomeReadFailed:
		m = exhausted
	case recovery.OutcomeDeadline:
		m = overdue
	case recovery.OutcomeAmbiguous:
		m = ambiguous
	case recovery.OutcomeUnstopped:
		m = unstopped
	default:
		return
	}
	c.once(decision{m.name, pass, session}, m, label,
		zap.Int64("pass", pass), zap.String("session_id", session), zap.String("instance_id", instance))
}

// InstanceStopped counts an instance that recovery stopped as a duplicate.
func (c *Counters) InstanceStopped(session, instance string, reason recovery.StopReason) {
	if reason != recovery.StopDuplicate {
		return
	}
	c.once(decision{metric: duplicates.name, subject: instance}, duplicates, "",
		zap.String("session_id", session), zap.String("instance_id", instance))
}

// ServerDetached counts a server that was started to outlive this backend.
func (c *Counters) ServerDetached(server string) {
	c.once(decision{metric: detached.name, subject: server}, detached, "", zap.String("server_identity", server))
}

// LaunchRefused counts one refusal; each attempt is one.
func (c *Counters) LaunchRefused(session string, reason recovery.LaunchRefusal) {
	c.count(launches, string(reason), zap.String("session_id", session))
}

// CredentialSuperseded counts a server that another backend drives now.
func (c *Counters) CredentialSuperseded(server string, rotation uint64) {
	c.count(superseded, "", zap.String("server_identity", server), zap.Uint64("rotation_id", rotation))
}

func (c *Counters) once(d decision, m metric, label string, fields ...zap.Field) {
	c.mu.Lock()
	known := c.seen[d]
	c.seen[d] = true
	c.mu.Unlock()
	if !known {
		c.count(m, label, fields...)
	}
}

func (c *Counters) count(m metric, label string, fields ...zap.Field) {
	if m.label == "" {
		c.counters[m.name].WithLabelValues().Inc()
	} else {
		c.counters[m.name].WithLabelValues(label).Inc()
		fields = append(fields, zap.String(m.label, label))
	}
	c.logger.Info(m.event, fields...)
}
