package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/recovery"
)

func queueTask(batch *pgx.Batch, inst, id, title string) {
	batch.Queue(`
		INSERT INTO tasks (installation_id, id, title, state) VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING`, inst, id, title, string(recovery.TaskBacklog))
}

// moveTask puts the session's task into a bucket. A task is neither finished
// nor interrupted while another of its sessions runs: it then stays in
// progress. The task is locked first, so that of two sessions that end at once
// the second sees the first.
func moveTask(ctx context.Context, tx pgx.Tx, sess *Session, to recovery.TaskState) error {
	err := tx.QueryRow(ctx, `
		SELECT state FROM tasks WHERE installation_id = $1 AND id = $2 FOR NO KEY UPDATE`,
		sess.Installation, sess.TaskID).Scan(&sess.TaskState)
	if err != nil {
		return err
	}
	yields := to == recovery.TaskReview || to == recovery.TaskInterrupted
	tag, err := tx.Exec(ctx, `
		UPDATE tasks SET state = $3, updated_at = clock_timestamp()
		WHERE installation_id = $1 AND id = $2
		  AND NOT ($4 AND EXISTS (
		      SELECT FROM task_sessions o
		      WHERE o.installation_id = $1 AND o.task_id = $2 AND o.id <> $5 AND o.state = $6))`,
		sess.Installation, sess.TaskID, string(to), yields, sess.ID, string(recovery.StateRunning))
	if err == nil && tag.RowsAffected() == 1 {
		sess.TaskState = to
	}
	return err
}
