//go:build unix

package postgrestest_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/stack/postgrestest"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }

func tables(t *testing.T, dsn string) (names []string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	rows, err := conn.Query(ctx, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
	require.NoError(t, err)
	names, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	return names
}

func run(t *testing.T, dsn, statement string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, statement)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
}

// Tests do not see each other's databases, and each begins empty.
func TestEveryTestHasAnEmptyDatabase(t *testing.T) {
	first, second := postgrestest.TestDatabase(t), postgrestest.TestDatabase(t)
	run(t, first, "CREATE TABLE only_here ()")
	require.Equal(t, []string{"only_here"}, tables(t, first))
	require.Empty(t, tables(t, second))
}

// A template is prepared once; its copies are independent.
func TestTemplateIsPreparedOnce(t *testing.T) {
	prepared := 0
	prepare := func(dsn string) error {
		prepared++
		run(t, dsn, "CREATE TABLE from_template ()")
		return nil
	}
	first := postgrestest.FromTemplate(t, "once", prepare)
	second := postgrestest.FromTemplate(t, "once", prepare)
	run(t, first, "DROP TABLE from_template")
	require.Empty(t, tables(t, first))
	require.Equal(t, []string{"from_template"}, tables(t, second))
	require.Equal(t, 1, prepared)
}

// A lent database is clean, is lent again after its test, and never to two
// tests at once.
func TestLentDatabases(t *testing.T) {
	prepare := func(dsn string) error { run(t, dsn, "CREATE TABLE rows (n int)"); return nil }
	clean := func(dsn string) error { run(t, dsn, "TRUNCATE rows"); return nil }
	var first, again string
	t.Run("first", func(t *testing.T) {
		first = postgrestest.Lend(t, "lent", prepare, clean)
		require.NotEqual(t, first, postgrestest.Lend(t, "lent", prepare, clean))
		run(t, first, "INSERT INTO rows VALUES (1)")
	})
	t.Run("again", func(t *testing.T) {
		again = postgrestest.Lend(t, "lent", prepare, clean)
		require.Equal(t, first, again)
		run(t, again, "ALTER TABLE rows ADD CHECK (n IS NULL)") // fails if a row were left
	})
}

// A server of a test's own keeps what it has, and its address, over a restart.
func TestOwnServerIsStoppedAndStarted(t *testing.T) {
	server := postgrestest.Own(t)
	dsn := server.DSN()
	run(t, dsn, "CREATE TABLE kept ()")
	server.Stop(t)
	_, err := pgx.Connect(t.Context(), dsn)
	require.Error(t, err)
	server.Start(t)
	require.Equal(t, dsn, server.DSN())
	require.Equal(t, []string{"kept"}, tables(t, dsn))
}
