package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Credential reads and unseals a control server's credential. ErrSecretMissing
// is the database's answer that there is none, ErrSecretSealed that it is there
// and cannot be unsealed (O-001.9); an error that matches ErrUnavailable is
// neither.
func (s *Store) Credential(ctx context.Context, inst, secretRef string) (string, error) {
	const op = "read credential"
	var sealed []byte
	err := s.pool.QueryRow(ctx, `
		SELECT sealed FROM secrets WHERE installation_id = $1 AND ref = $2`, inst, secretRef).Scan(&sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", wrap(op, ErrSecretMissing)
	}
	if err != nil {
		return "", wrap(op, err)
	}
	plain, err := s.sealer.Unseal(sealed)
	if err != nil {
		return "", wrap(op, fmt.Errorf("%w: %w", ErrSecretSealed, err))
	}
	return string(plain), nil
}

func queueSecret(batch *pgx.Batch, inst, ref string, sealed []byte) {
	batch.Queue(`
		INSERT INTO secrets (installation_id, ref, sealed) VALUES ($1, $2, $3)
		ON CONFLICT (installation_id, ref) DO UPDATE
		SET sealed = excluded.sealed, updated_at = clock_timestamp()`, inst, ref, sealed)
}
