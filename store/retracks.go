package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/recovery"
)

// Retrack publishes a surviving instance as tracked again.
type Retrack struct {
	Installation   string
	SessionID      string
	ExecutionID    string // the instance's id, which the record names from now on (S-002.2)
	Generation     int64  // 0 leaves it
	BootID         string
	ServerIdentity string
	PID            int
	ProcessStart   string
	// ProviderSessionID is the instance's; empty leaves the resume token.
	ProviderSessionID string
	// State is the state unless Outcome is applied: StateRunning when the
	// instance has an open turn; "" leaves the stored state (S-004.2).
	State   recovery.SessionState
	Outcome *Outcome // the kept outcome, if any
}

// Retracked is the result of a Retrack.
type Retracked struct {
	Session        Session
	OutcomeApplied bool
}

// Publish makes a re-tracking durable in one transaction: it ends the turn of
// the kept outcome, if that turn is open, and writes exactly one transition
// with CauseRetracked, straight to the resulting state, so that a turn that
// ended meanwhile is never shown as running (S-004.2). Nothing is interrupted
// or abandoned by it (S-003.2 to S-003.5). Repeating it in the same boot
// changes nothing (S-002.9). ErrConflict if the session is in a state without
// an agent, ErrNoRecord if the inventory does not know the session.
func (s *Store) Publish(ctx context.Context, r Retrack) (Retracked, error) {
	const op = "publish re-tracking"
	if err := checkText(r.ExecutionID, r.ServerIdentity, r.ProcessStart, r.ProviderSessionID); err != nil {
		return Retracked{}, wrap(op, err)
	}
	var out Retracked
	err := s.inTx(ctx, op, func(tx pgx.Tx) error {
		sess, rec, err := lockExecution(ctx, tx, r.Installation, r.SessionID)
		switch {
		case err != nil:
			return err
		case !sess.State.HasAgent():
			return &ConflictError{SessionID: sess.ID, Current: sess.State}
		case rec.Generation == 0:
			return ErrNoRecord
		case rec.TrackedByBoot == r.BootID && rec.ExecutionID == r.ExecutionID:
			out, err = again(ctx, tx, sess, r)
			return err
		}
		if out, err = retrack(ctx, tx, sess, r); err != nil {
			return err
		}
		return writeRetracked(ctx, tx, &out.Session, r)
	})
	return out, err
}

// again serves a repeated call: only an outcome that came in between is new.
func again(ctx context.Context, tx pgx.Tx, sess Session, r Retrack) (Retracked, error) {
	out := Retracked{Session: sess}
	if r.Outcome == nil {
		return out, nil
	}
	var err error
	out.OutcomeApplied, err = applyOutcome(ctx, tx, &out.Session, *r.Outcome, r.BootID)
	return out, err
}

func retrack(ctx context.Context, tx pgx.Tx, sess Session, r Retrack) (Retracked, error) {
	change := Change{From: withAgent, To: sess.State, BootID: r.BootID, Cause: CauseRetracked}
	if r.State != "" {
		change.To = r.State
	}
	out := Retracked{Session: sess}
	if r.Outcome != nil {
		var err error
		if out.OutcomeApplied, err = endTurn(ctx, tx, sess, *r.Outcome); err != nil {
			return out, err
		}
	}
	switch {
	case out.OutcomeApplied:
		review := recovery.TaskReview
		change.To, change.TaskTo, change.TurnID = recovery.StateWaitingForInput, &review, r.Outcome.TurnID
	case change.To == recovery.StateRunning && sess.State != recovery.StateRunning:
		inProgress := recovery.TaskInProgress
		change.TaskTo = &inProgress
	}
	return out, move(ctx, tx, &out.Session, change)
}

func writeRetracked(ctx context.Context, tx pgx.Tx, sess *Session, r Retrack) error {
	batch := &pgx.Batch{}
	batch.Queue(`
		UPDATE executors_running
		SET agent_execution_id = $3, generation = CASE WHEN $4 > 0 THEN $4 ELSE generation END,
		    server_identity = $5, pid = $6, process_start = $7, tracked_by_boot = $8,
		    resume_token = coalesce(nullif($9, ''), resume_token),
		    started_at = coalesce(started_at, clock_timestamp()), updated_at = clock_timestamp()
		WHERE installation_id = $1 AND session_id = $2`,
		r.Installation, r.SessionID, r.ExecutionID, r.Generation, r.ServerIdentity, r.PID, r.ProcessStart,
		r.BootID, r.ProviderSessionID)
	if r.ProviderSessionID != "" {
		queueProviderSession(batch, *sess, r.ProviderSessionID)
		sess.ProviderSessionID = r.ProviderSessionID
	}
	return execAll(ctx, tx, batch)
}
