//go:build unix

// Package postgrestest gives every test a real database of its own. The tests
// of one binary share a cluster, which starts with the first that needs it.
//
// A watchdog process holds a pipe from the test binary and ends the cluster
// when that pipe closes: nothing is left running, also when the binary is
// killed or runs into its timeout.
package postgrestest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/stack/postgres"
)

const timeout = 60 * time.Second

// A socket's path is short; a temporary directory of the user's may not be.
const parent = "/tmp"

var shared struct {
	sync.Mutex
	cluster   *postgres.Cluster
	err       error
	watchdog  *watchdog
	templates map[string]bool
	idle      map[string][]string // by template: databases that were lent and cleaned
}

// Main runs the tests of a binary and ends the cluster that they shared. Use
// it in TestMain: os.Exit(postgrestest.Main(m)). Check for leaked goroutines
// after it.
func Main(m interface{ Run() int }) int {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the tests' Postgres:", err)
		return 1
	}
	return code
}

func stop() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.watchdog == nil {
		return nil
	}
	return shared.watchdog.release()
}

// TestDatabase returns the connection string of a fresh empty database, which
// goes with the test.
func TestDatabase(t testing.TB) string {
	t.Helper()
	cluster := running(t)
	dsn := create(t, cluster, "")
	t.Cleanup(func() { drop(t, cluster, dsn) })
	return dsn
}

// FromTemplate returns the connection string of a fresh copy of a database that
// prepare has filled, once for all tests of the binary that give this name.
func FromTemplate(t testing.TB, name string, prepare func(dsn string) error) string {
	t.Helper()
	cluster := running(t)
	fill(t, cluster, name, prepare)
	dsn := create(t, cluster, template(name))
	t.Cleanup(func() { drop(t, cluster, dsn) })
	return dsn
}

// Lend is FromTemplate for tests that leave the schema alone, and quicker: when
// the test is over, clean empties the database for the next one.
func Lend(t testing.TB, name string, prepare, clean func(dsn string) error) string {
	t.Helper()
	cluster := running(t)
	fill(t, cluster, name, prepare)
	dsn, ok := takeIdle(name)
	if !ok {
		dsn = create(t, cluster, template(name))
	}
	t.Cleanup(func() {
		require.NoError(t, clean(dsn), "clean a lent database")
		shared.Lock()
		defer shared.Unlock()
		shared.idle[name] = append(shared.idle[name], dsn)
	})
	return dsn
}

func takeIdle(name string) (dsn string, ok bool) {
	shared.Lock()
	defer shared.Unlock()
	idle := shared.idle[name]
	if len(idle) == 0 {
		return "", false
	}
	shared.idle[name] = idle[:len(idle)-1]
	return idle[len(idle)-1], true
}

func template(name string) string { return " TEMPLATE " + pgx.Identifier{name}.Sanitize() }

func fill(t testing.TB, cluster *postgres.Cluster, name string, prepare func(dsn string) error) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.templates[name] {
		return
	}
	execute(t, cluster, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	require.NoError(t, prepare(withDatabase(t, cluster.DSN, name)), "prepare template %s", name)
	shared.templates[name] = true
}

func create(t testing.TB, cluster *postgres.Cluster, options string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	execute(t, cluster, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+options)
	return withDatabase(t, cluster.DSN, name)
}

func drop(t testing.TB, cluster *postgres.Cluster, dsn string) {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	execute(t, cluster, "DROP DATABASE "+pgx.Identifier{strings.TrimPrefix(u.Path, "/")}.Sanitize()+" WITH (FORCE)")
}

func execute(t testing.TB, cluster *postgres.Cluster, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, cluster.DSN)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, statement)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
}

func withDatabase(t testing.TB, dsn, name string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	u.Path = "/" + name
	return u.String()
}

func running(t testing.TB) *postgres.Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil && shared.err == nil {
		shared.err = startCluster()
	}
	require.NoError(t, shared.err, "start the tests' Postgres")
	return shared.cluster
}

func startCluster() (err error) {
	var dir string
	if dir, shared.watchdog, err = watchedDirectory(); err != nil {
		return err
	}
	shared.templates, shared.idle = map[string]bool{}, map[string][]string{}
	shared.cluster, err = startIn(dir)
	return err
}

func startIn(dir string) (*postgres.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return postgres.Start(ctx, postgres.Config{Dir: dir + "/pg", Fast: true, Logger: zap.NewNop()})
}
