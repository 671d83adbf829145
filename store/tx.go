package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// inTx runs fn in a read-committed transaction. An error of fn rolls back. A
// commit that the server answered with a rollback is an error too, which pgx
// tells by the command tag; a commit whose answer was lost is ErrUnavailable,
// and the caller repeats the call.
func (s *Store) inTx(ctx context.Context, op string, fn func(pgx.Tx) error) error {
	return wrap(op, pgx.BeginFunc(ctx, s.pool, fn))
}

// execAll sends several statements in one round trip.
func execAll(ctx context.Context, tx pgx.Tx, batch *pgx.Batch) error {
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, batch).Close()
}
