//go:build unix

package postgrestest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/stack/postgres"
)

// Server is a Postgres server of one test's own, which it may stop and start.
type Server struct {
	dir     string
	cluster *postgres.Cluster
}

// Own starts a server with an empty database. It goes with the test.
func Own(t testing.TB) *Server {
	t.Helper()
	dir, watchdog, err := watchedDirectory()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, watchdog.release()) })
	s := &Server{dir: dir}
	s.Start(t)
	return s
}

// DSN is the connection string of its database, which no restart changes.
func (s *Server) DSN() string { return s.cluster.DSN }

// Start starts the server, unless it runs, and waits until it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	var err error
	s.cluster, err = startIn(s.dir)
	require.NoError(t, err)
}

// Stop disconnects the server's clients and ends it.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	require.NoError(t, s.cluster.Stop(ctx))
}
