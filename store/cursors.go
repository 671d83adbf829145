package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

const selectCursor = `
	SELECT seq, session_id FROM event_cursors WHERE installation_id = $1 AND instance_id = $2`

// Cursor reads the newest committed number of an instance; 0 if nothing of it
// is committed.
func (s *Store) Cursor(ctx context.Context, inst, instance string) (int64, error) {
	var seq int64
	var session string
	err := s.pool.QueryRow(ctx, selectCursor, inst, instance).Scan(&seq, &session)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return seq, wrap("read event cursor", err)
}

// setCursor puts the cursor of the batch's instance, which may have none yet,
// under the lock of its session.
func setCursor(ctx context.Context, tx pgx.Tx, b Batch, seq int64) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO event_cursors (installation_id, instance_id, session_id, seq) VALUES ($1, $2, $3, $4)
		ON CONFLICT (installation_id, instance_id) DO UPDATE SET seq = excluded.seq`,
		b.Installation, b.InstanceID, b.SessionID, seq)
	return err
}
