package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/recovery"
)

// Start asks for the intent of a start: StateStarting and the execution id are
// written before anything is spawned.
type Start struct {
	Installation string
	SessionID    string
	ExecutionID  string                  // random, the caller's; repeating it changes nothing
	From         []recovery.SessionState // nil means StateCreated only
	BootID       string
	Cause        string // "" means CauseStart
}

// Begun is a start that was written down.
type Begun struct {
	Session     Session
	ExecutionID string
	Generation  int64 // previous one of the session plus 1
	Prior       recovery.SessionState
}

// BeginStart moves the session to StateStarting and writes the intent to the
// inventory, in one transaction. The same execution id again answers the
// same start. ErrExecutionReplaced if the record names another execution, or
// if this one was given up before, so that a late attempt leaves no stale
// StateStarting. ErrConflict in a state that is not in From.
func (s *Store) BeginStart(ctx context.Context, b Start) (Begun, error) {
	const op = "begin start"
	if err := checkText(b.ExecutionID); err != nil {
		return Begun{}, wrap(op, err)
	}
	if b.From == nil {
		b.From = []recovery.SessionState{recovery.StateCreated}
	}
	if b.Cause == "" {
		b.Cause = CauseStart
	}
	var begun Begun
	err := s.inTx(ctx, op, func(tx pgx.Tx) error {
		sess, rec, err := lockExecution(ctx, tx, b.Installation, b.SessionID)
		if err != nil {
			return err
		}
		begun = Begun{Session: sess, ExecutionID: b.ExecutionID, Generation: rec.Generation, Prior: sess.PriorState}
		switch {
		case rec.ExecutionID == b.ExecutionID:
			return nil
		case rec.ExecutionID != "" || rec.endedExecution == b.ExecutionID:
			return ErrExecutionReplaced
		}
		begun.Prior = sess.State
		err = move(ctx, tx, &sess, Change{From: b.From, To: recovery.StateStarting, BootID: b.BootID, Cause: b.Cause})
		if err != nil {
			return err
		}
		sess.PriorState, sess.Attempt = begun.Prior, sess.Attempt+1
		begun.Session, begun.Generation = sess, rec.Generation+1
		return writeIntent(ctx, tx, begun, b.BootID)
	})
	return begun, err
}

func writeIntent(ctx context.Context, tx pgx.Tx, b Begun, bootID string) error {
	batch := &pgx.Batch{}
	batch.Queue(`
		UPDATE task_sessions SET prior_state = $3, attempt = $4 WHERE installation_id = $1 AND id = $2`,
		b.Session.Installation, b.Session.ID, string(b.Prior), b.Session.Attempt)
	batch.Queue(`
		INSERT INTO executors_running (installation_id, session_id, agent_execution_id, generation,
		                               profile_id, worktree, created_by_boot)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (installation_id, session_id) DO UPDATE
		SET agent_execution_id = excluded.agent_execution_id, generation = excluded.generation,
		    profile_id = excluded.profile_id, worktree = excluded.worktree,
		    created_by_boot = excluded.created_by_boot, updated_at = clock_timestamp()`,
		b.Session.Installation, b.Session.ID, b.ExecutionID, b.Generation, b.Session.ProfileID,
		b.Session.Workspace, bootID)
	return execAll(ctx, tx, batch)
}

// Started is what is known of an agent that is ready.
type Started struct {
	Installation      string
	SessionID         string
	ExecutionID       string
	BootID            string
	ServerIdentity    string
	PID               int
	ProcessStart      string
	ProviderSessionID string // empty leaves the resume token as it is
}

// PublishStarted moves a starting session to StateWaitingForInput and writes
// what is known of its agent, in one transaction. Repeating it changes
// nothing. A task that had a turn before is in review again.
// ErrExecutionReplaced if the execution is no longer the current one.
func (s *Store) PublishStarted(ctx context.Context, p Started) (Session, error) {
	const op = "publish start"
	if err := checkText(p.ProviderSessionID, p.ProcessStart, p.ServerIdentity); err != nil {
		return Session{}, wrap(op, err)
	}
	var sess Session
	err := s.inTx(ctx, op, func(tx pgx.Tx) (err error) {
		var rec InventoryRecord
		if sess, rec, err = lockExecution(ctx, tx, p.Installation, p.SessionID); err != nil {
			return err
		}
		if rec.ExecutionID != p.ExecutionID {
			return ErrExecutionReplaced
		}
		if rec.StartedAt != nil {
			return nil
		}
		if err := moveToReady(ctx, tx, &sess, p.BootID); err != nil {
			return err
		}
		return writeStarted(ctx, tx, &sess, p)
	})
	return sess, err
}

func moveToReady(ctx context.Context, tx pgx.Tx, sess *Session, bootID string) error {
	var hadTurn bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM turns WHERE installation_id = $1 AND session_id = $2)`,
		sess.Installation, sess.ID).Scan(&hadTurn)
	if err != nil {
		return err
	}
	change := Change{
		From: []recovery.SessionState{recovery.StateStarting}, To: recovery.StateWaitingForInput,
		BootID: bootID, Cause: CauseStarted,
	}
	if hadTurn {
		review := recovery.TaskReview
		change.TaskTo = &review
	}
	return move(ctx, tx, sess, change)
}

func writeStarted(ctx context.Context, tx pgx.Tx, sess *Session, p Started) error {
	batch := &pgx.Batch{}
	batch.Queue(`
		UPDATE executors_running
		SET server_identity = $3, pid = $4, process_start = $5, tracked_by_boot = $6,
		    resume_token = coalesce(nullif($7, ''), resume_token),
		    started_at = clock_timestamp(), updated_at = clock_timestamp()
		WHERE installation_id = $1 AND session_id = $2`,
		sess.Installation, sess.ID, p.ServerIdentity, p.PID, p.ProcessStart, p.BootID, p.ProviderSessionID)
	if p.ProviderSessionID != "" {
		queueProviderSession(batch, *sess, p.ProviderSessionID)
		sess.ProviderSessionID = p.ProviderSessionID
	}
	return execAll(ctx, tx, batch)
}

// Abandon undoes a start that failed, timed out or was cancelled.
type Abandon struct {
	Installation string
	SessionID    string
	ExecutionID  string
	BootID       string
	Cause        string // bounded, no path
}

// AbandonStart restores the state before the start, StateFailed if that was
// StateCreated, and takes the execution out of the record. The resume token
// stays. It acts only while that execution is the current one and the
// session is still starting; otherwise the session is answered as it is. In
// any case an execution that is not published never begins afterwards.
func (s *Store) AbandonStart(ctx context.Context, a Abandon) (Session, error) {
	const op = "abandon start"
	if err := checkText(a.ExecutionID); err != nil {
		return Session{}, wrap(op, err)
	}
	var sess Session
	err := s.inTx(ctx, op, func(tx pgx.Tx) (err error) {
		var rec InventoryRecord
		if sess, rec, err = lockExecution(ctx, tx, a.Installation, a.SessionID); err != nil {
			return err
		}
		switch {
		case rec.ExecutionID == "":
			return forbidExecution(ctx, tx, sess, a.ExecutionID)
		case rec.ExecutionID != a.ExecutionID || sess.State != recovery.StateStarting:
			return nil
		}
		prior := sess.PriorState
		if prior == recovery.StateCreated {
			prior = recovery.StateFailed
		}
		err = move(ctx, tx, &sess, Change{
			From: []recovery.SessionState{recovery.StateStarting}, To: prior, BootID: a.BootID, Cause: a.Cause,
		})
		if err != nil {
			return err
		}
		return clearExecution(ctx, tx, sess)
	})
	return sess, err
}

// forbidExecution keeps an execution from beginning after it was given up: its
// intent may still be on the way.
func forbidExecution(ctx context.Context, tx pgx.Tx, sess Session, execution string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO executors_running (installation_id, session_id, ended_execution_id) VALUES ($1, $2, $3)
		ON CONFLICT (installation_id, session_id) DO UPDATE SET ended_execution_id = excluded.ended_execution_id`,
		sess.Installation, sess.ID, execution)
	return err
}
