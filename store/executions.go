package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/recovery"
)

// InventoryRecord is one row of executors_running with what recovery needs of
// its session (S-002.14). ExecutionID is empty while nothing runs; the row
// stays, with its resume token and worktree.
type InventoryRecord struct {
	SessionID         string
	TaskID            string
	TaskEnvironmentID string
	ProfileID         string
	Workspace         string
	Roots             []string
	State             recovery.SessionState
	PriorState        recovery.SessionState
	Passthrough       bool

	ExecutionID    string // the instance id
	Generation     int64
	ResumeToken    string // provider-native session id
	Worktree       string
	CreatedByBoot  string // the boot that began the execution
	TrackedByBoot  string // the boot that last started or re-tracked it
	ServerIdentity string
	PID            int
	ProcessStart   string // opaque start identity of PID; a PID without it means nothing (B-12)
	StopRequested  bool   // a user's stop was written first (W-7)
	StopRequestID  string
	StartedAt      *time.Time // nil until the agent was ready
	UpdatedAt      time.Time

	endedExecution string
}

const selectRecord = `
	SELECT r.session_id, s.task_id, s.task_environment_id, s.profile_id, s.workspace, s.roots, s.state,
	       s.prior_state, coalesce(s.passthrough, false), r.agent_execution_id, r.generation, r.resume_token, r.worktree,
	       r.created_by_boot, r.tracked_by_boot, r.server_identity, r.pid, r.process_start,
	       r.stop_requested_at IS NOT NULL, r.stop_request_id, r.started_at, r.updated_at, r.ended_execution_id
	FROM executors_running r
	JOIN task_sessions s ON s.installation_id = r.installation_id AND s.id = r.session_id
	WHERE r.installation_id = $1`

func scanRecord(row pgx.Row) (InventoryRecord, error) {
	var r InventoryRecord
	err := row.Scan(&r.SessionID, &r.TaskID, &r.TaskEnvironmentID, &r.ProfileID, &r.Workspace, &r.Roots, &r.State,
		&r.PriorState, &r.Passthrough, &r.ExecutionID, &r.Generation, &r.ResumeToken, &r.Worktree,
		&r.CreatedByBoot, &r.TrackedByBoot, &r.ServerIdentity, &r.PID, &r.ProcessStart,
		&r.StopRequested, &r.StopRequestID, &r.StartedAt, &r.UpdatedAt, &r.endedExecution)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoRecord
	}
	return r, err
}

// GetRecord reads a session's record; ErrNoRecord if it never had an agent.
func (s *Store) GetRecord(ctx context.Context, inst, session string) (InventoryRecord, error) {
	r, err := scanRecord(s.pool.QueryRow(ctx, selectRecord+` AND r.session_id = $2`, inst, session))
	return r, wrap("read inventory record", err)
}

// LiveStandalone reads every record of the standalone runtime whose session is
// expected to have an agent, passthrough sessions excluded: only a row that says
// so is one (S-002.8, S-005.3). No records and no error is authoritative
// (S-002.6).
func (s *Store) LiveStandalone(ctx context.Context, inst string) ([]InventoryRecord, error) {
	return s.live(ctx, "read recovery inventory", ` AND s.passthrough IS NOT TRUE`, inst)
}

// LivePassthrough reads the other ones: the records of passthrough sessions that
// are expected to have an agent (S-005.3).
func (s *Store) LivePassthrough(ctx context.Context, inst string) ([]InventoryRecord, error) {
	return s.live(ctx, "read records of passthrough sessions", ` AND s.passthrough`, inst)
}

func (s *Store) live(ctx context.Context, op, mode, inst string) ([]InventoryRecord, error) {
	rows, err := s.pool.Query(ctx, selectRecord+mode+`
		AND r.runtime = 'standalone' AND s.state = ANY ($2)
		ORDER BY r.session_id`, inst, stateNames(withAgent))
	if err != nil {
		return nil, wrap(op, err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (InventoryRecord, error) { return scanRecord(row) })
	return list, wrap(op, err)
}

// lockExecution locks a session and then reads its record, which is empty if
// there is none: the session's lock covers the record.
func lockExecution(ctx context.Context, tx pgx.Tx, inst, session string) (Session, InventoryRecord, error) {
	sess, err := lockSession(ctx, tx, inst, session)
	if err != nil {
		return sess, InventoryRecord{}, err
	}
	rec, err := scanRecord(tx.QueryRow(ctx, selectRecord+` AND r.session_id = $2`, inst, session))
	if errors.Is(err, ErrNoRecord) {
		return sess, InventoryRecord{SessionID: session}, nil
	}
	return sess, rec, err
}

// clearExecution takes the execution out of the record and keeps what a resume
// needs: resume token, worktree, generation (S-002.7). What was taken out never
// begins again.
func clearExecution(ctx context.Context, tx pgx.Tx, sess Session) error {
	_, err := tx.Exec(ctx, `
		UPDATE executors_running
		SET ended_execution_id = agent_execution_id, agent_execution_id = '', server_identity = '',
		    pid = 0, process_start = '', tracked_by_boot = '', stop_request_id = '', stop_requested_at = NULL,
		    started_at = NULL, updated_at = clock_timestamp()
		WHERE installation_id = $1 AND session_id = $2 AND agent_execution_id <> ''`, sess.Installation, sess.ID)
	return err
}

func stateNames(states []recovery.SessionState) []string {
	names := make([]string, len(states))
	for i, state := range states {
		names[i] = string(state)
	}
	return names
}
