package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// EventRow is one event of an instance, as its control server numbered it.
type EventRow struct {
	Seq     int64
	Kind    string
	TurnID  string
	At      time.Time
	Payload json.RawMessage
}

// Batch is what one transaction commits: consecutive events of one instance,
// and what they say about turns.
type Batch struct {
	Installation string
	SessionID    string
	InstanceID   string
	BootID       string
	Events       []EventRow
	TurnsStarted []TurnStart
	Outcomes     []Outcome
}

// CommitEvents appends a batch to the session's transcript in one transaction,
// under the lock of the session's row, so that positions have no hole and none
// becomes visible late. It returns the newest committed number of the instance,
// which may be acknowledged (B-1). Events that are committed already are
// ignored: after an error the caller repeats the same batch, also when it is
// not known whether the commit took place. An *EventGapError, matching
// ErrEventGap, refuses a batch that does not continue at the cursor or has a
// hole in itself; nothing of it is written.
//
// AppendTogether is the shorter way for nearly all batches.
func (s *Store) CommitEvents(ctx context.Context, b Batch) (committed int64, err error) {
	err = s.inTx(ctx, "commit events", func(tx pgx.Tx) error {
		committed, err = commitBatch(ctx, tx, b)
		return err
	})
	return committed, err
}

func commitBatch(ctx context.Context, tx pgx.Tx, b Batch) (committed int64, err error) {
	cursor, err := lockTranscript(ctx, tx, b.Installation, b.SessionID, b.InstanceID)
	if err != nil {
		return 0, err
	}
	fresh, err := continuation(b.Events, cursor)
	if err != nil {
		return 0, err
	}
	if err := appendAt(ctx, tx, b, fresh); err != nil {
		return 0, err
	}
	return cursor + int64(len(fresh)), settleTurns(ctx, tx, b)
}

// continuation drops what is committed, and checks that the rest follows.
func continuation(events []EventRow, cursor int64) ([]EventRow, error) {
	for len(events) > 0 && events[0].Seq <= cursor {
		events = events[1:]
	}
	for i, e := range events {
		if e.Seq != cursor+int64(i)+1 {
			return nil, &EventGapError{Cursor: cursor + int64(i), Got: e.Seq}
		}
	}
	return events, nil
}

// lockTranscript locks the session's row and reads the instance's cursor, in
// one round trip. The cursor is a statement of its own, because only a
// statement that begins after the lock was granted sees what its last holder
// committed.
func lockTranscript(ctx context.Context, tx pgx.Tx, inst, session, instance string) (cursor int64, err error) {
	owner, found := session, false
	batch := &pgx.Batch{}
	batch.Queue(`
		SELECT true FROM task_sessions WHERE installation_id = $1 AND id = $2 FOR NO KEY UPDATE`,
		inst, session).QueryRow(func(row pgx.Row) error { return row.Scan(&found) })
	batch.Queue(selectCursor, inst, instance).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&cursor, &owner}, func() error { return nil })
		return err
	})
	err = execAll(ctx, tx, batch)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, ErrNoSession
	case err != nil:
		return 0, err
	case owner != session:
		return 0, fmt.Errorf("instance %s belongs to another session", instance)
	}
	return cursor, nil
}

// errCursorMoved cannot happen to the holder of the session's lock.
var errCursorMoved = errors.New("the event cursor moved under the session's lock")

// appendAt writes consecutive events under the lock of lockTranscript, having set
// the cursor to right before them.
func appendAt(ctx context.Context, tx pgx.Tx, b Batch, events []EventRow) error {
	if len(events) == 0 {
		return nil
	}
	c := columns{}
	if err := c.add(b, events); err != nil {
		return err
	}
	if err := setCursor(ctx, tx, b, events[0].Seq-1); err != nil {
		return err
	}
	done, err := c.append(ctx, tx)
	if err == nil && len(done) == 0 {
		return errCursorMoved
	}
	return err
}

// settleTurns applies what the events say about turns; those that are applied
// already change nothing.
func settleTurns(ctx context.Context, tx pgx.Tx, b Batch) error {
	for _, t := range b.TurnsStarted {
		if _, err := openTurn(ctx, tx, b.Installation, b.SessionID, t); err != nil {
			return err
		}
	}
	if len(b.Outcomes) == 0 {
		return nil
	}
	sess, err := lockSession(ctx, tx, b.Installation, b.SessionID)
	if err != nil {
		return err
	}
	for _, o := range b.Outcomes {
		if _, err := applyOutcome(ctx, tx, &sess, o, b.BootID); err != nil {
			return err
		}
	}
	return nil
}

// Gap is a stretch of events of an instance that is lost for good.
type Gap struct {
	Installation string
	SessionID    string
	InstanceID   string
	Next         int64 // number of the next event that exists
	At           time.Time
}

// EventKindGap marks lost events in a transcript. Its payload is
// {"first":…,"last":…}, the numbers that are lost (B-1).
const EventKindGap = "gap"

// CommitGap marks the events between the cursor and Next as lost, with one
// event in their place, and advances the cursor, so that the instance's events
// can be committed from Next on. It returns the cursor. Repeating it, or a gap
// that is none, changes nothing.
func (s *Store) CommitGap(ctx context.Context, g Gap) (committed int64, err error) {
	err = s.inTx(ctx, "commit gap", func(tx pgx.Tx) error {
		cursor, err := lockTranscript(ctx, tx, g.Installation, g.SessionID, g.InstanceID)
		if err != nil {
			return err
		}
		committed = max(cursor, g.Next-1)
		if committed == cursor {
			return nil
		}
		payload := fmt.Sprintf(`{"first":%d,"last":%d}`, cursor+1, committed)
		mark := EventRow{Seq: committed, Kind: EventKindGap, At: g.At, Payload: json.RawMessage(payload)}
		b := Batch{Installation: g.Installation, SessionID: g.SessionID, InstanceID: g.InstanceID}
		return appendAt(ctx, tx, b, []EventRow{mark})
	})
	return committed, err
}

// Event is one committed event. Position counts per session from 1, without
// holes.
type Event struct {
	Position   int64
	InstanceID string
	Seq        int64
	Kind       string
	TurnID     string
	At         time.Time
	Payload    json.RawMessage // nil is none
}

// EventsAfter reads at most limit committed events behind the position, in
// order.
func (s *Store) EventsAfter(ctx context.Context, inst, session string, position int64, limit int) ([]Event, error) {
	const op = "read events"
	rows, err := s.pool.Query(ctx, `
		SELECT position, instance_id, seq, kind, turn_id, at, payload FROM agent_events
		WHERE session_id = $2 AND position > $3 AND installation_id = $1
		ORDER BY position LIMIT $4`, inst, session, position, limit)
	if err != nil {
		return nil, wrap(op, err)
	}
	list, err := pgx.CollectRows(rows, scanEvent)
	return list, wrap(op, err)
}

func scanEvent(row pgx.CollectableRow) (Event, error) {
	var e Event
	var payload string
	err := row.Scan(&e.Position, &e.InstanceID, &e.Seq, &e.Kind, &e.TurnID, &e.At, &payload)
	if payload != "" {
		e.Payload = json.RawMessage(payload)
	}
	return e, err
}

// CountEvents counts the session's committed events.
func (s *Store) CountEvents(ctx context.Context, inst, session string) (n int64, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT count(*) FROM agent_events WHERE session_id = $2 AND installation_id = $1`, inst, session).Scan(&n)
	return n, wrap("count events", err)
}
