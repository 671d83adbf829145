package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/recovery"
)

// Causes of the transitions that the store itself decides.
const (
	CauseStart     = "start"
	CauseStarted   = "started"
	CausePrompt    = "prompt"
	CauseTurnEnded = "turn_ended"
	CauseRetracked = "retracked"
)

// Change is one compare-and-set of a session's state.
type Change struct {
	Installation string
	SessionID    string
	From         []recovery.SessionState // states from which it is allowed
	To           recovery.SessionState
	TaskTo       *recovery.TaskState // nil leaves the task alone
	BootID       string
	Cause        string // machine-readable or short text; no path
	TurnID       string // the turn that it is about, if any
}

// Transition is one row of session_transitions. Version is the session's state
// version after it; versions of a session have no holes.
type Transition struct {
	Version int64
	From    recovery.SessionState
	To      recovery.SessionState
	Cause   string
	BootID  string
	TurnID  string
	At      time.Time
}

// Transition changes a session's state if it is in one of the states of From;
// otherwise a *ConflictError, matching ErrConflict, names the current one.
func (s *Store) Transition(ctx context.Context, c Change) (Session, error) {
	var sess Session
	err := s.inTx(ctx, "change session state", func(tx pgx.Tx) (err error) {
		if sess, err = lockSession(ctx, tx, c.Installation, c.SessionID); err != nil {
			return err
		}
		return move(ctx, tx, &sess, c)
	})
	return sess, err
}

// Transitions lists a session's changes of state, oldest first.
func (s *Store) Transitions(ctx context.Context, inst, session string) ([]Transition, error) {
	const op = "list transitions"
	rows, err := s.pool.Query(ctx, `
		SELECT version, from_state, to_state, cause, boot_id, turn_id, at FROM session_transitions
		WHERE installation_id = $1 AND session_id = $2 ORDER BY version`, inst, session)
	if err != nil {
		return nil, wrap(op, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Transition])
	return list, wrap(op, err)
}

// move is the only code that writes a session's state. The session was
// locked and read in the same transaction; comparing the version as well keeps
// a session that was read elsewhere from overwriting anything. State and
// transition are one statement.
func move(ctx context.Context, tx pgx.Tx, sess *Session, c Change) error {
	if !slices.Contains(c.From, sess.State) {
		return &ConflictError{SessionID: sess.ID, Current: sess.State}
	}
	cause := cleanText(c.Cause)
	err := tx.QueryRow(ctx, `
		WITH moved AS (
		    UPDATE task_sessions
		    SET state = $4, state_version = state_version + 1, cause = $5, updated_at = clock_timestamp()
		    WHERE installation_id = $1 AND id = $2 AND state_version = $3
		    RETURNING installation_id, id, state_version, updated_at)
		INSERT INTO session_transitions (installation_id, session_id, version, from_state, to_state,
		                                 cause, boot_id, turn_id, at)
		SELECT installation_id, id, state_version, $6, $4, $5, $7, $8, updated_at FROM moved
		RETURNING version, at`,
		sess.Installation, sess.ID, sess.StateVersion, string(c.To), cause, string(sess.State),
		c.BootID, cleanText(c.TurnID)).Scan(&sess.StateVersion, &sess.UpdatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return &ConflictError{SessionID: sess.ID, Current: sess.State}
	}
	if err != nil {
		return err
	}
	sess.State, sess.Cause = c.To, cause
	if c.TaskTo == nil {
		return nil
	}
	return moveTask(ctx, tx, sess, *c.TaskTo)
}

// withAgent are the states of recovery.SessionState.HasAgent, for queries and
// guards.
var withAgent = []recovery.SessionState{
	recovery.StateStarting, recovery.StateRunning, recovery.StateWaitingForInput,
}
