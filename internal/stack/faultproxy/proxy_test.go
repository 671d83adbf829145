//go:build unix

package faultproxy_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/stack/faultproxy"
	"github.com/kandev/recovery/internal/stack/postgrestest"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }

const insert = `INSERT INTO rows VALUES (1)`

// writes are the ways in which a client has something committed.
var writes = map[string]func(context.Context, *pgx.Conn) error{
	"a transaction": func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insert)
			return err
		})
	},
	"a statement": func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, insert)
		return err
	},
	"a described statement": func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `INSERT INTO rows VALUES ($1)`, pgx.QueryExecModeCacheDescribe, 1)
		return err
	},
}

// A connection goes well for as many commits as it is to, then ends before or
// after the next one took effect, and its client is told of neither.
func TestCutsAreWhereTheyAreSaidToBe(t *testing.T) {
	dsn := postgrestest.TestDatabase(t)
	direct := connect(t, dsn)
	_, err := direct.Exec(t.Context(), `CREATE TABLE rows (n int)`)
	require.NoError(t, err)
	proxy := faultproxy.Start(t, dsn)
	for name, write := range writes {
		for kind, committed := range map[faultproxy.Kind]int{faultproxy.BeforeCommit: 2, faultproxy.AfterCommit: 3} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				_, err := direct.Exec(t.Context(), `TRUNCATE rows`)
				require.NoError(t, err)
				made := proxy.Made()[kind]
				proxy.Use(func() faultproxy.Fault { return faultproxy.Fault{Kind: kind, After: 2} })
				conn := connect(t, proxy.DSN())
				for range 2 {
					require.NoError(t, write(t.Context(), conn))
				}
				require.Error(t, write(t.Context(), conn))
				require.True(t, conn.IsClosed())
				require.Equal(t, made+1, proxy.Made()[kind])
				var rows int
				require.NoError(t, direct.QueryRow(t.Context(), `SELECT count(*) FROM rows`).Scan(&rows))
				require.Equal(t, committed, rows)
			})
		}
	}
}

// What is cut in the middle ends for the client too, and what is used without a
// plan goes through.
func TestCutsInTheMiddle(t *testing.T) {
	proxy := faultproxy.Start(t, postgrestest.TestDatabase(t))
	for _, kind := range []faultproxy.Kind{faultproxy.ToServer, faultproxy.ToClient, faultproxy.AtCommit} {
		proxy.Use(nil)
		conn := connect(t, proxy.DSN())
		require.NoError(t, conn.Ping(t.Context()))
		proxy.Use(func() faultproxy.Fault { return faultproxy.Fault{Kind: kind} })
		require.Error(t, conn.Ping(t.Context()), "it is cut when the plan changes")
		conn, err := pgx.Connect(t.Context(), proxy.DSN())
		if kind == faultproxy.AtCommit {
			require.NoError(t, err)
			err = conn.Ping(t.Context())
		}
		require.Error(t, err)
		require.Positive(t, proxy.Made()[kind])
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() {
		if !conn.IsClosed() {
			require.NoError(t, conn.Close(context.Background()))
		}
	})
	return conn
}
