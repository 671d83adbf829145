package store

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/internal/credential"
)

// ControlServer is the record of the one control server of an installation
// (O-001.1). The credential lies in the secrets, under SecretRef.
type ControlServer struct {
	ServerIdentity string
	Endpoint       string
	Fingerprint    string // of its TLS certificate
	RotationID     uint64 // of the stored credential
	SecretRef      string
	Capabilities   []string
	LogPath        string
	PID            int
	ProcessStart   string
	BootID         string // the boot that wrote the record
}

const selectControlServer = `
	SELECT server_identity, endpoint, fingerprint, rotation_id, secret_ref, capabilities, log_path,
	       pid, process_start, boot_id
	FROM control_server_records WHERE installation_id = $1`

func scanControlServer(row pgx.Row) (ControlServer, error) {
	var c ControlServer
	var rotation int64
	err := row.Scan(&c.ServerIdentity, &c.Endpoint, &c.Fingerprint, &rotation, &c.SecretRef, &c.Capabilities,
		&c.LogPath, &c.PID, &c.ProcessStart, &c.BootID)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoRecord
	}
	c.RotationID = uint64(rotation)
	return c, err
}

// GetControlServer reads the record. ErrNoRecord says that there is none; any
// other error that it is not known (O-001.8).
func (s *Store) GetControlServer(ctx context.Context, inst string) (ControlServer, error) {
	c, err := scanControlServer(s.pool.QueryRow(ctx, selectControlServer, inst))
	return c, wrap("read control server record", err)
}

// PutControlServer writes the record and the sealed credential in one
// transaction (O-002.7). For a server that is recorded already the secret is
// replaced in place, and ErrRotationStale refuses an older rotation than the
// recorded one; the same rotation again is a replay and is written again. For
// another server the secret gets a new reference and the old one stays
// (O-001.9), unless SecretRef names where to put it; see RetainedCredentials for
// how long it stays.
func (s *Store) PutControlServer(ctx context.Context, inst string, c ControlServer, token string) error {
	const op = "write control server record"
	if c.RotationID > math.MaxInt64 {
		return wrap(op, errors.New("rotation id out of range"))
	}
	if err := checkText(c.ServerIdentity, c.Endpoint, c.Fingerprint, c.LogPath); err != nil {
		return wrap(op, err)
	}
	sealed, err := s.sealer.Seal([]byte(token))
	if err != nil {
		return wrap("seal credential", err)
	}
	return s.inTx(ctx, op, func(tx pgx.Tx) error {
		if err := lockInstallation(ctx, tx, inst); err != nil {
			return err
		}
		current, err := scanControlServer(tx.QueryRow(ctx, selectControlServer, inst))
		switch {
		case errors.Is(err, ErrNoRecord):
		case err != nil:
			return err
		case current.ServerIdentity == c.ServerIdentity && c.RotationID < current.RotationID:
			return ErrRotationStale
		case current.ServerIdentity == c.ServerIdentity && c.SecretRef == "":
			c.SecretRef = current.SecretRef
		}
		if c.SecretRef == "" {
			c.SecretRef = credential.NewID()
		}
		batch := &pgx.Batch{}
		queueCredential(batch, inst, c, sealed)
		queueControlServer(batch, inst, c)
		return execAll(ctx, tx, batch)
	})
}

func queueControlServer(batch *pgx.Batch, inst string, c ControlServer) {
	batch.Queue(`
		INSERT INTO control_server_records (installation_id, server_identity, endpoint, fingerprint, rotation_id,
		    secret_ref, capabilities, log_path, pid, process_start, boot_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (installation_id) DO UPDATE
		SET server_identity = excluded.server_identity, endpoint = excluded.endpoint,
		    fingerprint = excluded.fingerprint, rotation_id = excluded.rotation_id,
		    secret_ref = excluded.secret_ref, capabilities = excluded.capabilities,
		    log_path = excluded.log_path, pid = excluded.pid, process_start = excluded.process_start,
		    boot_id = excluded.boot_id, updated_at = clock_timestamp()`,
		inst, c.ServerIdentity, c.Endpoint, c.Fingerprint, int64(c.RotationID), c.SecretRef,
		notNil(c.Capabilities), c.LogPath, c.PID, c.ProcessStart, c.BootID)
}
