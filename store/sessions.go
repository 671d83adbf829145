package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/internal/credential"
	"github.com/kandev/recovery/recovery"
)

// NewSession asks for a session in StateCreated. Without a TaskID it gets a
// task of its own; a TaskID that is not there yet is created.
type NewSession struct {
	Installation string
	TaskID       string
	Title        string // of the task, when it is created
	ProfileID    string
	Workspace    string
	Roots        []string // workspace source roots
	Passthrough  bool
}

// Session is one row of task_sessions, with the state of its task.
type Session struct {
	ID                string
	Installation      string
	TaskID            string
	TaskTitle         string
	TaskState         recovery.TaskState
	TaskEnvironmentID string
	State             recovery.SessionState
	StateVersion      int64
	PriorState        recovery.SessionState // the state before the newest start, which a failed start restores
	Attempt           int64                 // starts so far
	Passthrough       bool                  // its agent ends with the backend; false where the row does not say (S-005.3)
	ProfileID         string
	Workspace         string
	Roots             []string
	ProviderSessionID string // metadata.acp.session_id, the resume token
	Cause             string // of the newest transition
	Position          int64  // newest committed event
	CreatedAt         time.Time
	UpdatedAt         time.Time
}

const selectSession = `
	SELECT s.id, s.installation_id, s.task_id, t.title, t.state, s.task_environment_id,
	       s.state, s.state_version, s.prior_state, s.attempt, coalesce(s.passthrough, false), s.profile_id,
	       s.workspace, s.roots, coalesce(s.metadata #>> '{acp,session_id}', ''), s.cause,
	       s.last_position, s.created_at, s.updated_at
	FROM task_sessions s JOIN tasks t ON t.installation_id = s.installation_id AND t.id = s.task_id
	WHERE s.installation_id = $1`

func scanSession(row pgx.Row) (Session, error) {
	var s Session
	err := row.Scan(&s.ID, &s.Installation, &s.TaskID, &s.TaskTitle, &s.TaskState, &s.TaskEnvironmentID,
		&s.State, &s.StateVersion, &s.PriorState, &s.Attempt, &s.Passthrough, &s.ProfileID,
		&s.Workspace, &s.Roots, &s.ProviderSessionID, &s.Cause, &s.Position, &s.CreatedAt, &s.UpdatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoSession
	}
	return s, err
}

// CreateSession writes a new session; ErrNoProfile if its profile is not there.
func (s *Store) CreateSession(ctx context.Context, n NewSession) (Session, error) {
	const op = "create session"
	if err := checkText(append([]string{n.TaskID, n.Title, n.ProfileID, n.Workspace}, n.Roots...)...); err != nil {
		return Session{}, wrap(op, err)
	}
	if n.TaskID == "" {
		n.TaskID = credential.NewID()
	}
	id := credential.NewID()
	var created Session
	err := s.inTx(ctx, op, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		queueTask(batch, n.Installation, n.TaskID, n.Title)
		batch.Queue(`
			INSERT INTO task_sessions (installation_id, id, task_id, task_environment_id, profile_id,
			                           workspace, roots, passthrough, state)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			n.Installation, id, n.TaskID, credential.NewID(), n.ProfileID,
			n.Workspace, notNil(n.Roots), n.Passthrough, string(recovery.StateCreated))
		err := execAll(ctx, tx, batch)
		switch {
		case hasConstraint(err, "task_sessions_installation_id_profile_id_fkey"):
			return ErrNoProfile
		case hasCode(err, sqlForeignKeyViolation):
			return ErrNoInstallation
		case err != nil:
			return err
		}
		created, err = scanSession(tx.QueryRow(ctx, selectSession+` AND s.id = $2`, n.Installation, id))
		return err
	})
	return created, err
}

// GetSession reads a session; ErrNoSession if there is none.
func (s *Store) GetSession(ctx context.Context, inst, session string) (Session, error) {
	found, err := scanSession(s.pool.QueryRow(ctx, selectSession+` AND s.id = $2`, inst, session))
	return found, wrap("get session", err)
}

// ListSessions reads all sessions of the installation, oldest first.
func (s *Store) ListSessions(ctx context.Context, inst string) ([]Session, error) {
	const op = "list sessions"
	rows, err := s.pool.Query(ctx, selectSession+` ORDER BY s.created_at, s.id`, inst)
	if err != nil {
		return nil, wrap(op, err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Session, error) { return scanSession(row) })
	return list, wrap(op, err)
}

// lockSession reads a session and holds its row until the transaction ends.
// Whatever changes a session, its turns, its record or its events begins here.
// The lock is the one that lets foreign keys be checked meanwhile.
func lockSession(ctx context.Context, tx pgx.Tx, inst, session string) (Session, error) {
	return scanSession(tx.QueryRow(ctx, selectSession+` AND s.id = $2 FOR NO KEY UPDATE OF s`, inst, session))
}

// queueProviderSession writes the resume token to the session's metadata.
func queueProviderSession(batch *pgx.Batch, sess Session, id string) {
	batch.Queue(`
		UPDATE task_sessions
		SET metadata = metadata || jsonb_build_object('acp',
		        coalesce(metadata -> 'acp', '{}') || jsonb_build_object('session_id', $3::text))
		WHERE installation_id = $1 AND id = $2`, sess.Installation, sess.ID, id)
}
