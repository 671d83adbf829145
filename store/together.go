package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// AppendTogether commits batches of one installation in one transaction of one
// statement, so that their sessions share a round trip and a flush of the log. It
// reports of each whether it was committed. Those that were not, CommitEvents
// judges one by one: an instance's first batch, one that repeats or leaves a hole,
// one that tells of turns, and one whose session is locked just now, because no
// session waits for another. After an error nothing is known of any of them, and
// CommitEvents finds out (B-1).
func (s *Store) AppendTogether(ctx context.Context, batches []Batch) (appended []bool, err error) {
	c, members := columns{}, []int(nil)
	for i, b := range batches {
		if b.mere() && b.Installation == batches[0].Installation {
			members = append(members, i)
			if err := c.add(b, b.Events); err != nil {
				return nil, err
			}
		}
	}
	appended = make([]bool, len(batches))
	if len(members) == 0 {
		return appended, nil
	}
	numbers, err := c.append(ctx, s.pool)
	if err != nil {
		return nil, wrap("append events", err)
	}
	for _, n := range numbers {
		appended[members[n-1]] = true
	}
	return appended, nil
}

// mere reports whether the batch is consecutive events and nothing else, so that
// append_batches may be able to write it. Where the cursor is only the database
// can say.
func (b Batch) mere() bool {
	if len(b.Events) == 0 || len(b.TurnsStarted)+len(b.Outcomes) > 0 {
		return false
	}
	_, err := continuation(b.Events, b.Events[0].Seq-1)
	return err == nil
}

// columns are batches as append_batches takes them.
type columns struct {
	installation string

	sessions, instances []string
	cursors, counts     []int64

	batches, seqs          []int64
	kinds, turns, payloads []string
	times                  []time.Time
}

// add appends consecutive events of the batch's instance.
func (c *columns) add(b Batch, events []EventRow) error {
	c.installation = b.Installation
	c.sessions, c.instances = append(c.sessions, b.SessionID), append(c.instances, b.InstanceID)
	c.cursors, c.counts = append(c.cursors, events[0].Seq-1), append(c.counts, int64(len(events)))
	number := int64(len(c.sessions))
	for _, e := range events {
		payload, err := cleanJSON(e.Payload)
		if err != nil {
			return err
		}
		c.batches, c.seqs = append(c.batches, number), append(c.seqs, e.Seq)
		c.kinds, c.turns = append(c.kinds, cleanText(e.Kind)), append(c.turns, cleanText(e.TurnID))
		c.times, c.payloads = append(c.times, micros(e.At)), append(c.payloads, payload)
	}
	return nil
}

// querier is a transaction, or the pool, for which a statement is one.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// append writes the batches whose cursor is right before them, and returns their
// numbers, from 1. Describing the statement once per connection lets the events go
// in binary form, which spares both sides the quoting of what is mostly quotes;
// the statement itself stays unnamed (B-23).
func (c *columns) append(ctx context.Context, db querier) (numbers []int64, err error) {
	err = db.QueryRow(ctx, `SELECT append_batches($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		pgx.QueryExecModeCacheDescribe, c.installation, c.sessions, c.instances, c.cursors, c.counts,
		c.batches, c.seqs, c.kinds, c.turns, c.times, c.payloads).Scan(&numbers)
	return numbers, err
}
