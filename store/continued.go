package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// continued is consecutive events of one instance as append_events takes them:
// column by column, numbered from after + 1.
type continued struct {
	inst, session, instance string
	after                   int64
	kinds, turns, payloads  []string
	times                   []time.Time
}

// mere reports whether the batch is consecutive events and nothing else, so that
// append_events may be able to write it. Where the cursor is only the database
// can say.
func (b Batch) mere() bool {
	if len(b.Events) == 0 || len(b.TurnsStarted)+len(b.Outcomes) > 0 {
		return false
	}
	_, err := continuation(b.Events, b.Events[0].Seq-1)
	return err == nil
}

func newContinued(b Batch, events []EventRow) (*continued, error) {
	n := len(events)
	c := &continued{
		inst: b.Installation, session: b.SessionID, instance: b.InstanceID, after: events[0].Seq - 1,
		kinds: make([]string, n), turns: make([]string, n), payloads: make([]string, n), times: make([]time.Time, n),
	}
	var err error
	for i, e := range events {
		if c.payloads[i], err = cleanJSON(e.Payload); err != nil {
			return nil, err
		}
		c.kinds[i], c.turns[i], c.times[i] = cleanText(e.Kind), cleanText(e.TurnID), micros(e.At)
	}
	return c, nil
}

// last is the number of the newest of the events.
func (c *continued) last() int64 { return c.after + int64(len(c.kinds)) }

// querier is a transaction, or the pool, for which a statement is one.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// append writes the events if the cursor is right before them, and reports
// whether it was. Describing the statement once per connection lets the events
// go in binary form, which spares both sides the quoting of what is mostly
// quotes; the statement itself stays unnamed (B-23).
func (c *continued) append(ctx context.Context, db querier) (done bool, err error) {
	err = db.QueryRow(ctx, `SELECT append_events($1, $2, $3, $4, $5, $6, $7, $8)`, pgx.QueryExecModeCacheDescribe,
		c.inst, c.session, c.instance, c.after, c.kinds, c.turns, c.times, c.payloads).Scan(&done)
	return done, err
}
