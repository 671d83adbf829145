package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kandev/recovery/recovery"
)

// RecoveryOutcome is what one pass did with one session (S-003.1).
type RecoveryOutcome struct {
	Pass      int64
	SessionID string
	Outcome   recovery.SessionOutcome
	Instance  string
	State     recovery.SessionState
	Detail    string // bounded, no path
	At        time.Time
}

// PutRecoveryOutcomes writes the outcomes of a pass; At and Pass of the rows
// are the store's. A session's newer outcome of the same pass replaces the
// older.
func (s *Store) PutRecoveryOutcomes(ctx context.Context, inst, bootID string, pass int64, outcomes []RecoveryOutcome) error {
	columns := make([][]string, 5)
	for _, o := range outcomes {
		row := []string{o.SessionID, string(o.Outcome), o.Instance, string(o.State), cleanText(o.Detail)}
		for i, v := range row {
			columns[i] = append(columns[i], v)
		}
	}
	_, err := s.pool.Exec(ctx, `
		INSERT INTO recovery_outcomes (installation_id, boot_id, pass, session_id, outcome, instance_id, state, detail)
		SELECT DISTINCT ON (u.session_id) $1, $2, $3, u.session_id, u.outcome, u.instance_id, u.state, u.detail
		FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
		     WITH ORDINALITY AS u (session_id, outcome, instance_id, state, detail, number)
		ORDER BY u.session_id, u.number DESC
		ON CONFLICT (installation_id, boot_id, pass, session_id) DO UPDATE
		SET outcome = excluded.outcome, instance_id = excluded.instance_id, state = excluded.state,
		    detail = excluded.detail, at = clock_timestamp()`,
		inst, bootID, pass, columns[0], columns[1], columns[2], columns[3], columns[4])
	if hasCode(err, sqlForeignKeyViolation) {
		err = ErrNoInstallation
	}
	return wrap("write recovery outcomes", err)
}

// RecoveryOutcomes reads the outcomes of a boot, by pass and session.
func (s *Store) RecoveryOutcomes(ctx context.Context, inst, bootID string) ([]RecoveryOutcome, error) {
	const op = "read recovery outcomes"
	rows, err := s.pool.Query(ctx, `
		SELECT pass, session_id, outcome, instance_id, state, detail, at FROM recovery_outcomes
		WHERE installation_id = $1 AND boot_id = $2 ORDER BY pass, session_id`, inst, bootID)
	if err != nil {
		return nil, wrap(op, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[RecoveryOutcome])
	return list, wrap(op, err)
}
