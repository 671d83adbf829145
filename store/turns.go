package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/recovery"
)

// Turn is one prompt and how it ended. Key is the caller's, unique in the
// session; TurnID is the control server's, empty until it is known.
type Turn struct {
	Key        string
	TurnID     string
	State      recovery.TurnState
	Blocks     json.RawMessage // JSON array of ACP content blocks, to be sent again as it is
	StopReason string
	Error      string
	CreatedAt  time.Time
	EndedAt    *time.Time
}

// Outcome is how a turn ended. Error is set when it failed.
type Outcome struct {
	TurnID     string
	Key        string
	StopReason string
	Error      string
	EndedAt    time.Time
}

// TurnStart says which turn id the control server gave to a prompt.
type TurnStart struct {
	Key    string
	TurnID string
}

const (
	selectTurn = `
		SELECT key, coalesce(turn_id, ''), state, blocks, stop_reason, error, created_at, ended_at
		FROM turns WHERE installation_id = $1 AND session_id = $2`
	turnIsOpen = ` AND state IN ('RECORDED', 'OPEN')`
)

func scanTurn(row pgx.Row) (Turn, error) {
	var t Turn
	var blocks string
	err := row.Scan(&t.Key, &t.TurnID, &t.State, &blocks, &t.StopReason, &t.Error, &t.CreatedAt, &t.EndedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoTurn
	}
	t.Blocks = json.RawMessage(blocks)
	return t, err
}

// RecordTurn writes a prompt down before it is sent: the session goes from
// StateWaitingForInput to StateRunning, its task to TaskInProgress, and the
// turn is TurnRecorded with its blocks, so that it can be sent again
// (S-004.2). The same key again answers the same turn, whatever became of it
// (B-17). ErrTurnOpen if another turn has not ended; ErrConflict in another
// state.
func (s *Store) RecordTurn(ctx context.Context, inst, session, key string, blocks json.RawMessage, bootID string) (turn Turn, created bool, err error) {
	const op = "record turn"
	text, err := cleanJSON(blocks)
	if err == nil {
		err = checkText(key)
	}
	if err != nil {
		return Turn{}, false, wrap(op, err)
	}
	err = s.inTx(ctx, op, func(tx pgx.Tx) error {
		sess, err := lockSession(ctx, tx, inst, session)
		if err != nil {
			return err
		}
		turn, err = scanTurn(tx.QueryRow(ctx, selectTurn+` AND (key = $3 OR state IN ('RECORDED', 'OPEN'))
			ORDER BY key = $3 DESC LIMIT 1`, inst, session, key))
		switch {
		case err == nil && turn.Key == key:
			return nil
		case err == nil:
			return ErrTurnOpen
		case !errors.Is(err, ErrNoTurn):
			return err
		}
		inProgress := recovery.TaskInProgress
		err = move(ctx, tx, &sess, Change{
			From: []recovery.SessionState{recovery.StateWaitingForInput}, To: recovery.StateRunning,
			TaskTo: &inProgress, BootID: bootID, Cause: CausePrompt,
		})
		if err != nil {
			return err
		}
		turn, created = Turn{Key: key, State: recovery.TurnRecorded, Blocks: json.RawMessage(text)}, true
		return tx.QueryRow(ctx, `
			INSERT INTO turns (installation_id, session_id, number, key, state, blocks)
			SELECT $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5
			FROM turns WHERE installation_id = $1 AND session_id = $2
			RETURNING created_at`, inst, session, key, string(recovery.TurnRecorded), text).Scan(&turn.CreatedAt)
	})
	return turn, created && err == nil, err
}

// MarkTurnSent notes the turn id that the control server gave to a recorded
// prompt, which makes it TurnOpen. A turn that has ended meanwhile stays
// ended. ErrNoTurn if there is no such prompt, or if it has another id.
func (s *Store) MarkTurnSent(ctx context.Context, inst, session, key, turnID string) error {
	return s.inTx(ctx, "mark turn sent", func(tx pgx.Tx) error {
		if _, err := lockSession(ctx, tx, inst, session); err != nil {
			return err
		}
		found, err := openTurn(ctx, tx, inst, session, TurnStart{Key: key, TurnID: turnID})
		if err == nil && !found {
			return ErrNoTurn
		}
		return err
	})
}

// openTurn does it for one prompt of a locked session.
func openTurn(ctx context.Context, tx pgx.Tx, inst, session string, t TurnStart) (found bool, err error) {
	tag, err := tx.Exec(ctx, `
		UPDATE turns SET turn_id = $4, state = CASE state WHEN 'RECORDED' THEN 'OPEN' ELSE state END
		WHERE installation_id = $1 AND session_id = $2 AND key = $3 AND (turn_id IS NULL OR turn_id = $4)`,
		inst, session, t.Key, cleanText(t.TurnID))
	return tag.RowsAffected() == 1, err
}

// OpenTurn returns the turn that has not ended, or nil.
func (s *Store) OpenTurn(ctx context.Context, inst, session string) (*Turn, error) {
	return s.oneTurn(ctx, "read open turn", selectTurn+turnIsOpen, inst, session)
}

// LastTurn returns the newest turn, or nil.
func (s *Store) LastTurn(ctx context.Context, inst, session string) (*Turn, error) {
	return s.oneTurn(ctx, "read last turn", selectTurn+` ORDER BY number DESC LIMIT 1`, inst, session)
}

func (s *Store) oneTurn(ctx context.Context, op, query, inst, session string) (*Turn, error) {
	turn, err := scanTurn(s.pool.QueryRow(ctx, query, inst, session))
	if errors.Is(err, ErrNoTurn) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap(op, err)
	}
	return &turn, nil
}

// ApplyOutcome ends a turn, once: by its turn id, or by its key while no turn
// id is known (S-004.4, S-004.6). Then a running session waits for input and
// its task is in review. An outcome of a turn that has ended, or that is not
// this session's, changes nothing, the next turn least of all.
func (s *Store) ApplyOutcome(ctx context.Context, inst, session string, o Outcome, bootID string) (applied bool, sess Session, err error) {
	err = s.inTx(ctx, "apply turn outcome", func(tx pgx.Tx) (err error) {
		if sess, err = lockSession(ctx, tx, inst, session); err != nil {
			return err
		}
		applied, err = applyOutcome(ctx, tx, &sess, o, bootID)
		return err
	})
	return applied && err == nil, sess, err
}

func applyOutcome(ctx context.Context, tx pgx.Tx, sess *Session, o Outcome, bootID string) (bool, error) {
	ended, err := endTurn(ctx, tx, *sess, o)
	if err != nil || !ended || sess.State != recovery.StateRunning {
		return ended, err
	}
	review := recovery.TaskReview
	return true, move(ctx, tx, sess, Change{
		From: []recovery.SessionState{recovery.StateRunning}, To: recovery.StateWaitingForInput,
		TaskTo: &review, BootID: bootID, Cause: CauseTurnEnded, TurnID: o.TurnID,
	})
}

// endTurn writes the outcome to the open turn that it belongs to, if that turn
// is open.
func endTurn(ctx context.Context, tx pgx.Tx, sess Session, o Outcome) (ended bool, err error) {
	tag, err := tx.Exec(ctx, `
		UPDATE turns
		SET state = $5, turn_id = coalesce(turn_id, nullif($4, '')), stop_reason = $6, error = $7, ended_at = $8
		WHERE installation_id = $1 AND session_id = $2
		  AND (turn_id = $4 OR (turn_id IS NULL AND key = $3))`+turnIsOpen,
		sess.Installation, sess.ID, cleanText(o.Key), cleanText(o.TurnID),
		string(recovery.TurnStateOf(o.StopReason, o.Error != "")), cleanText(o.StopReason), cleanText(o.Error),
		micros(o.EndedAt))
	return tag.RowsAffected() == 1, err
}

// closeTurns ends whatever turn of the session is open, without an outcome.
func closeTurns(ctx context.Context, tx pgx.Tx, sess Session, to recovery.TurnState) (closed bool, err error) {
	tag, err := tx.Exec(ctx, `
		UPDATE turns SET state = $3, ended_at = clock_timestamp()
		WHERE installation_id = $1 AND session_id = $2`+turnIsOpen,
		sess.Installation, sess.ID, string(to))
	return tag.RowsAffected() > 0, err
}
