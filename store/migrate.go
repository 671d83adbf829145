package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"go.uber.org/zap"

	"github.com/kandev/recovery/store/migrations"
)

// migrationLock is the key of the advisory lock that migrations take. It is
// arbitrary and never changes.
const migrationLock int64 = 0x6b616e6465760001

// Migrate brings the schema to the version of this program. Several backends
// may do so at once on an empty database: one migrates, the others wait and
// find it done (B-7). A database that a newer program migrated is left alone
// with ErrSchemaNewer.
//
// The lock belongs to a transaction that does nothing else, so that it works
// through a transaction pooler and goes away with its holder (B-23). Migrate
// needs two connections at once.
func (s *Store) Migrate(ctx context.Context) error {
	return wrap("migrate", pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, migrationLock); err != nil {
			return err
		}
		db := stdlib.OpenDBFromPool(s.pool)
		return errors.Join(s.migrate(ctx, db), db.Close())
	}))
}

func (s *Store) migrate(ctx context.Context, db *sql.DB) error {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files,
		goose.WithTableName("schema_versions"), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("%w (it has version %d, this program %d)", ErrSchemaNewer, current, target)
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return err
	}
	if len(done) > 0 {
		s.logger.Info("database schema migrated", zap.Int64("from", current), zap.Int64("to", target))
	}
	return nil
}
