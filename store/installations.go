package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// EnsureInstallation records the installation if it is not recorded yet.
func (s *Store) EnsureInstallation(ctx context.Context, inst string) error {
	if err := checkText(inst); err != nil {
		return wrap("record installation", err)
	}
	_, err := s.pool.Exec(ctx, `INSERT INTO installations (id) VALUES ($1) ON CONFLICT DO NOTHING`, inst)
	return wrap("record installation", err)
}

// lockInstallation serializes changes to what an installation has one of.
func lockInstallation(ctx context.Context, tx pgx.Tx, inst string) error {
	tag, err := tx.Exec(ctx, `SELECT FROM installations WHERE id = $1 FOR NO KEY UPDATE`, inst)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoInstallation
	}
	return err
}
