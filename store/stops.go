package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/recovery"
)

// StopRequest is a user's stop, written before it is acted upon (W-7).
type StopRequest struct {
	Installation string
	SessionID    string
	RequestID    string
}

// RequestStop writes a user's stop to the record and answers it, so that the
// caller knows which execution to stop. A request joins the one that is there:
// the record then carries that one's id (B-22). ErrNoRecord if nothing runs.
func (s *Store) RequestStop(ctx context.Context, r StopRequest) (InventoryRecord, error) {
	const op = "request stop"
	if err := checkText(r.RequestID); err != nil {
		return InventoryRecord{}, wrap(op, err)
	}
	var rec InventoryRecord
	err := s.inTx(ctx, op, func(tx pgx.Tx) (err error) {
		_, rec, err = lockExecution(ctx, tx, r.Installation, r.SessionID)
		switch {
		case err != nil:
			return err
		case rec.ExecutionID == "":
			return ErrNoRecord
		case rec.StopRequested:
			return nil
		}
		rec.StopRequested, rec.StopRequestID = true, r.RequestID
		return tx.QueryRow(ctx, `
			UPDATE executors_running
			SET stop_request_id = $3, stop_requested_at = clock_timestamp(), updated_at = clock_timestamp()
			WHERE installation_id = $1 AND session_id = $2
			RETURNING updated_at`, r.Installation, r.SessionID, r.RequestID).Scan(&rec.UpdatedAt)
	})
	return rec, err
}

// StopEnd settles a user's stop. Stopped is false when a process survived the
// whole budget; the record then stays as it is, without the request.
type StopEnd struct {
	Installation string
	SessionID    string
	ExecutionID  string
	Stopped      bool
	To           recovery.SessionState // "" means StateCancelled
	BootID       string
	Cause        string
}

// FinishStop settles a user's stop: an open turn is cancelled, its task is in
// review, and the record keeps resume token and worktree. A stop that failed
// leaves a transition without a change of state, which says so. Repeating it,
// or settling an execution that is no longer the current one, changes nothing.
func (s *Store) FinishStop(ctx context.Context, e StopEnd) (Session, error) {
	if e.To == "" {
		e.To = recovery.StateCancelled
	}
	var sess Session
	err := s.inTx(ctx, "finish stop", func(tx pgx.Tx) (err error) {
		var rec InventoryRecord
		if sess, rec, err = lockExecution(ctx, tx, e.Installation, e.SessionID); err != nil {
			return err
		}
		switch {
		case rec.ExecutionID == "" || rec.ExecutionID != e.ExecutionID:
			return nil
		case e.Stopped:
			return endExecution(ctx, tx, &sess, recovery.TurnCancelled, recovery.TaskReview, Change{
				From: withAgent, To: e.To, BootID: e.BootID, Cause: e.Cause,
			})
		case !rec.StopRequested:
			return nil
		}
		return giveUpStop(ctx, tx, &sess, e)
	})
	return sess, err
}

func giveUpStop(ctx context.Context, tx pgx.Tx, sess *Session, e StopEnd) error {
	_, err := tx.Exec(ctx, `
		UPDATE executors_running
		SET stop_request_id = '', stop_requested_at = NULL, updated_at = clock_timestamp()
		WHERE installation_id = $1 AND session_id = $2`, sess.Installation, sess.ID)
	if err != nil {
		return err
	}
	return move(ctx, tx, sess, Change{
		From: []recovery.SessionState{sess.State}, To: sess.State, BootID: e.BootID, Cause: e.Cause,
	})
}
