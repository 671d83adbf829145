package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/recovery"
)

// Repair is a record whose agent is proven gone (S-002.7).
type Repair struct {
	Installation string
	SessionID    string
	ExecutionID  string // the execution that is gone; a newer one is left alone
	BootID       string
	Cause        string
}

// Repair takes the execution out of the record, keeping resume token and
// worktree, ends an open turn as TurnAbandoned and moves the session to
// StateInterrupted. Its task is interrupted only if a turn was cut off: a
// finished turn stays in review. Repeating it changes nothing.
// ErrExecutionReplaced if the record names another execution by now.
func (s *Store) Repair(ctx context.Context, r Repair) (Session, error) {
	var sess Session
	err := s.inTx(ctx, "repair record", func(tx pgx.Tx) (err error) {
		var rec InventoryRecord
		if sess, rec, err = lockExecution(ctx, tx, r.Installation, r.SessionID); err != nil {
			return err
		}
		switch {
		case rec.ExecutionID == "" && !sess.State.HasAgent():
			return nil
		case rec.ExecutionID != r.ExecutionID:
			return ErrExecutionReplaced
		}
		return endExecution(ctx, tx, &sess, recovery.TurnAbandoned, recovery.TaskInterrupted, Change{
			From: withAgent, To: recovery.StateInterrupted, BootID: r.BootID, Cause: r.Cause,
		})
	})
	return sess, err
}

// RepairIfCurrent is Repair for those who only want a record that is still of
// the execution repaired: one whose session ended, or got another execution,
// meanwhile is left as it is, and repaired is false.
func (s *Store) RepairIfCurrent(ctx context.Context, r Repair) (repaired bool, err error) {
	_, err = s.Repair(ctx, r)
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrExecutionReplaced) {
		return false, nil
	}
	return err == nil, err
}

// endExecution ends the open turn, moves the session unless it is already in a
// state without an agent, and clears the record. The task moves only if a turn
// was open.
func endExecution(ctx context.Context, tx pgx.Tx, sess *Session, turn recovery.TurnState, task recovery.TaskState, c Change) error {
	cut, err := closeTurns(ctx, tx, *sess, turn)
	if err != nil {
		return err
	}
	if cut {
		c.TaskTo = &task
	}
	if sess.State.HasAgent() {
		if err := move(ctx, tx, sess, c); err != nil {
			return err
		}
	}
	return clearExecution(ctx, tx, *sess)
}
