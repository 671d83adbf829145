//go:build unix

package postgres

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openDir is a directory that the server's user can reach, as short as sockets
// need.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pg-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "cluster")
}

func begin(t *testing.T, dir string, fast bool) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), Config{Dir: dir, Fast: fast, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { end(t, c) })
	return c
}

func end(t *testing.T, c *Cluster) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, c.Stop(ctx))
}

func ask(t *testing.T, c *Cluster, statement string) (answer string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.DSN)
	require.NoError(t, err)
	require.NoError(t, conn.QueryRow(t.Context(), statement).Scan(&answer))
	require.NoError(t, conn.Close(t.Context()))
	return answer
}

func execute(t *testing.T, c *Cluster, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.DSN)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), statement)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

func (p place) pid(t *testing.T) int {
	t.Helper()
	pid, err := strconv.Atoi(p.pidFileLine(0))
	require.NoError(t, err)
	return pid
}

func socketOf(t *testing.T, c *Cluster) string {
	t.Helper()
	u, err := url.Parse(c.DSN)
	require.NoError(t, err)
	return u.Query().Get("host")
}

// The cluster listens on a private socket only, is durable, and has a session
// of its own; a second start finds it; a stop is clean, may be repeated, and
// keeps the data.
func TestLifeOfACluster(t *testing.T) {
	dir := openDir(t)
	c := begin(t, dir, false)
	require.Equal(t, "", ask(t, c, "SHOW listen_addresses"))
	require.Equal(t, "on", ask(t, c, "SHOW fsync"))
	require.Equal(t, "kandev", ask(t, c, "SELECT current_database()::text"))
	info, err := os.Stat(socketOf(t, c))
	require.NoError(t, err)
	require.EqualValues(t, 0o700, info.Mode().Perm())
	execute(t, c, "CREATE TABLE kept (n int)")
	pid := c.place.pid(t)
	session, err := unix.Getsid(pid)
	require.NoError(t, err)
	own, err := unix.Getsid(0)
	require.NoError(t, err)
	require.NotEqual(t, own, session, "Ctrl-C in our terminal does not reach it")
	require.NotZero(t, c.place.owner.uid)

	execute(t, c, "INSERT INTO kept VALUES (7)")
	second := begin(t, dir, false)
	require.Equal(t, c.DSN, second.DSN)
	require.Equal(t, pid, second.place.pid(t))

	end(t, second)
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }, 10*time.Second, 10*time.Millisecond)
	end(t, second)
	end(t, c)
	third := begin(t, dir, false)
	require.Equal(t, "7", ask(t, third, "SELECT n::text FROM kept"))
}

// A machine that crashed leaves a pid file and half-made files: the next start
// recovers, and no process is signalled on the word of such a file.
func TestStartAfterACrash(t *testing.T) {
	dir := openDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data.new", "half"), 0o755))
	c := begin(t, dir, true)
	pid := c.place.pid(t)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Eventually(t, func() bool { return ping(t.Context(), socketOf(t, c)) != nil }, 10*time.Second, 10*time.Millisecond)
	end(t, c)
	require.Equal(t, pid, c.place.pid(t), "a server that does not answer is not ours to signal")
	again := begin(t, dir, true)
	require.NotEqual(t, pid, again.place.pid(t))
	require.Equal(t, "1", ask(t, again, "SELECT '1'"))
}

// Concurrent starts of one directory end with one server.
func TestConcurrentStarts(t *testing.T) {
	dir := openDir(t)
	clusters := make([]*Cluster, 3)
	var all sync.WaitGroup
	for i := range clusters {
		all.Go(func() {
			c, err := Start(t.Context(), Config{Dir: dir, Fast: true, Logger: zap.NewNop()})
			if err != nil {
				t.Error(err)
				return
			}
			clusters[i] = c
		})
	}
	all.Wait()
	require.False(t, t.Failed())
	t.Cleanup(func() { end(t, clusters[0]) })
	for _, c := range clusters {
		require.Equal(t, clusters[0].DSN, c.DSN)
	}
}

// Under a directory of mode 0700 root's cluster lies where its unprivileged
// user can reach it; anybody else's lies where it was asked to. A path that is
// too long for a socket gets a short one elsewhere.
func TestDirectoriesThatDoNotFit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30), "postgres")
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o700))
	c := begin(t, dir, true)
	if c.place.owner.other {
		require.Equal(t, filepath.Join(sharedBase, hash(dir), "postgres"), c.place.base)
		require.NoDirExists(t, dir)
		t.Cleanup(func() {
			require.NoError(t, os.RemoveAll(filepath.Dir(c.place.base)))
			if entries, err := os.ReadDir(sharedBase); err == nil && len(entries) == 0 {
				require.NoError(t, os.Remove(sharedBase))
			}
		})
	} else {
		require.Equal(t, dir, c.place.base)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(socketOf(t, c))) })
	}
	require.LessOrEqual(t, len(filepath.Join(socketOf(t, c), socketName)), maxSocketPath)
	require.Equal(t, "1", ask(t, c, "SELECT '1'"))
	end(t, c)
}

// A socket directory that somebody else made, or can read, is refused.
func TestSocketDirectoryIsPrivate(t *testing.T) {
	base := openDir(t)
	who, err := serverOwner()
	require.NoError(t, err)
	who.other = false
	open := filepath.Join(base, "run")
	require.NoError(t, os.MkdirAll(open, 0o755))
	require.ErrorContains(t, who.own(open), "not private")
	link := filepath.Join(base, "link")
	require.NoError(t, os.Symlink(base, link))
	require.ErrorContains(t, who.own(link), "not private")
}

// Without Postgres the operator is told how to get one; a cluster of another
// major version is not run by the wrong one.
func TestMissingPostgres(t *testing.T) {
	_, err := findBinaries(usualPlaces, "7")
	require.ErrorContains(t, err, "needs Postgres 7")
	require.Empty(t, Missing())
	t.Setenv("PATH", t.TempDir())
	_, err = findBinaries(nil, "")
	require.ErrorIs(t, err, ErrMissing)
	_, err = Start(t.Context(), Config{Dir: "relative", Logger: zap.NewNop()})
	require.Error(t, err)
}

// A cancelled start returns, and the next one works.
func TestCancelledStart(t *testing.T) {
	dir := openDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, Config{Dir: dir, Fast: true, Logger: zap.NewNop()})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "1", ask(t, begin(t, dir, true), "SELECT '1'"))
}
