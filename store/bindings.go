package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Binding ties a start that was written down to the control server that is to
// spawn its agent.
type Binding struct {
	Installation   string
	SessionID      string
	ExecutionID    string
	ServerIdentity string
}

// BindExecution writes which control server an execution is created on, before
// it is. Repeating it with the same server changes nothing. With another one it
// is ErrExecutionReplaced: the agent may live on the first, and a second one
// must not be started beside it.
func (s *Store) BindExecution(ctx context.Context, b Binding) error {
	const op = "bind execution"
	if err := checkText(b.ServerIdentity); err != nil {
		return wrap(op, err)
	}
	return s.inTx(ctx, op, func(tx pgx.Tx) error {
		_, rec, err := lockExecution(ctx, tx, b.Installation, b.SessionID)
		switch {
		case err != nil:
			return err
		case rec.ExecutionID != b.ExecutionID:
			return ErrExecutionReplaced
		case rec.ServerIdentity == b.ServerIdentity:
			return nil
		case rec.ServerIdentity != "":
			return ErrExecutionReplaced
		}
		_, err = tx.Exec(ctx, `
			UPDATE executors_running SET server_identity = $3, updated_at = clock_timestamp()
			WHERE installation_id = $1 AND session_id = $2`,
			b.Installation, b.SessionID, b.ServerIdentity)
		return err
	})
}
