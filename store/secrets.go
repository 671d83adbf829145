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

// RetainedCredential is a control server's credential that the record does not
// name any more.
type RetainedCredential struct {
	SecretRef      string
	ServerIdentity string
	PID            int // of the control server
	ProcessStart   string
}

// RetainedCredentials lists the credentials of earlier control servers, which
// were kept because those servers may still live.
func (s *Store) RetainedCredentials(ctx context.Context, inst string) ([]RetainedCredential, error) {
	const op = "list retained credentials"
	rows, err := s.pool.Query(ctx, `
		SELECT ref, server_identity, pid, process_start FROM secrets s
		WHERE installation_id = $1 AND server_identity <> '' AND NOT EXISTS (
		    SELECT FROM control_server_records c WHERE c.installation_id = $1 AND c.secret_ref = s.ref)
		ORDER BY ref`, inst)
	if err != nil {
		return nil, wrap(op, err)
	}
	retained, err := pgx.CollectRows(rows, pgx.RowToStructByPos[RetainedCredential])
	return retained, wrap(op, err)
}

// DropRetainedCredential removes the credential of a server that has ended. The
// one that the record names stays, whoever asks.
func (s *Store) DropRetainedCredential(ctx context.Context, inst, secretRef string) error {
	return s.inTx(ctx, "drop retained credential", func(tx pgx.Tx) error {
		if err := lockInstallation(ctx, tx, inst); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			DELETE FROM secrets WHERE installation_id = $1 AND ref = $2 AND NOT EXISTS (
			    SELECT FROM control_server_records c WHERE c.installation_id = $1 AND c.secret_ref = $2)`, inst, secretRef)
		return err
	})
}

// queueCredential writes the credential of the server in c under its reference.
func queueCredential(batch *pgx.Batch, inst string, c ControlServer, sealed []byte) {
	batch.Queue(`
		INSERT INTO secrets (installation_id, ref, sealed, server_identity, pid, process_start)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (installation_id, ref) DO UPDATE
		SET sealed = excluded.sealed, server_identity = excluded.server_identity, pid = excluded.pid,
		    process_start = excluded.process_start, updated_at = clock_timestamp()`,
		inst, c.SecretRef, sealed, c.ServerIdentity, c.PID, c.ProcessStart)
}
