//go:build unix

package store_test

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/stack/postgrestest"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

// B-7: concurrent first boots on an empty database all succeed.
func TestConcurrentMigrations(t *testing.T) {
	dsn := postgrestest.TestDatabase(t)
	const boots = 6
	var all sync.WaitGroup
	start := make(chan struct{})
	for range boots {
		s := storetest.At(t, dsn)
		require.NoError(t, s.Ping(t.Context()), "connected before the race")
		all.Go(func() {
			<-start
			noError(t, s.Migrate(t.Context()))
		})
	}
	close(start)
	all.Wait()
	s := storetest.At(t, dsn)
	require.NoError(t, s.Migrate(t.Context()), "again, on a database that is up to date")
	require.NoError(t, s.EnsureInstallation(t.Context(), "i"))
}

// A database that a newer program migrated is left alone, with a remedy.
func TestNewerSchemaIsRefused(t *testing.T) {
	ctx, dsn := t.Context(), storetest.FreshDSN(t)
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, `INSERT INTO schema_versions (version_id, is_applied) VALUES (999, true)`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	err = storetest.At(t, dsn).Migrate(ctx)
	require.ErrorIs(t, err, store.ErrSchemaNewer)
	require.NotErrorIs(t, err, store.ErrUnavailable)
	require.Contains(t, err.Error(), "newest version of the program")
}
