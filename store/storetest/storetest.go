//go:build unix

// Package storetest gives every test a migrated store on a real database of its
// own. Its users run their tests by postgrestest.Main.
package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/stack/postgrestest"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/seal"
)

// Open returns a migrated store, closed with the test.
func Open(t testing.TB) *store.Store {
	t.Helper()
	return At(t, DSN(t))
}

// DSN returns the connection string of a database that is migrated already, for
// tests that leave its schema alone.
func DSN(t testing.TB) string {
	t.Helper()
	return postgrestest.Lend(t, templateName, migrate(t), empty)
}

// FreshDSN is DSN for tests that change the schema.
func FreshDSN(t testing.TB) string {
	t.Helper()
	return postgrestest.FromTemplate(t, templateName, migrate(t))
}

const templateName = "migrated"

func migrate(t testing.TB) func(dsn string) error {
	return func(dsn string) error {
		ctx := context.Background()
		migrated, err := store.Open(ctx, dsn, store.Options{Logger: zap.NewNop(), Sealer: NewSealer(t)})
		if err != nil {
			return err
		}
		defer migrated.Close()
		return migrated.Migrate(ctx)
	}
}

// empty removes all rows. A test that still holds locks in its database fails
// here rather than waits.
func empty(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `TRUNCATE installations, agent_events CASCADE`)
	return errors.Join(err, conn.Close(ctx))
}

// At returns a store on the database, closed with the test. It has a sealing
// key of its own.
func At(t testing.TB, dsn string) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), dsn, store.Options{Logger: zap.NewNop(), Sealer: NewSealer(t)})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// NewSealer returns a sealer with a key of its own.
func NewSealer(t testing.TB) store.Sealer {
	t.Helper()
	key, err := seal.Open(t.TempDir())
	require.NoError(t, err)
	return key
}
