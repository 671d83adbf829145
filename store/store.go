package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
)

// Sealer encrypts secrets before they reach Postgres. Package seal has the one
// that keeps its key under the home directory.
type Sealer interface {
	Seal(plain []byte) ([]byte, error)
	Unseal(sealed []byte) ([]byte, error)
}

// Options configure a Store; all are needed.
type Options struct {
	Logger *zap.Logger
	Sealer Sealer
}

// Store is the durable state. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	logger *zap.Logger
	sealer Sealer
}

// DefaultConnections is how many connections a Store opens at most if its
// connection string does not say. Sessions commit one by one, and their commits
// share a flush of the log only while they are under way together; each costs a
// process of Postgres.
const DefaultConnections = 16

// Open checks the connection string and returns a Store; it does not contact
// Postgres, which may be away for now (W-8). The number of connections is the
// string's pool_max_conns, or DefaultConnections. Errors never contain the
// connection string.
//
// Statements run in pgx's "exec" mode: one round trip, with an unnamed
// statement that the server forgets. The default mode prepares named
// statements on the connection, which a transaction pooler hands to somebody
// else (B-23).
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	if opts.Logger == nil || opts.Sealer == nil {
		return nil, errors.New("store: logger and sealer are needed")
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("database.dsn is not a valid Postgres connection string")
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	if !limitsConnections(dsn) {
		cfg.MaxConns = DefaultConnections
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the connection pool: %w", err)
	}
	return &Store{pool: pool, logger: opts.Logger, sealer: opts.Sealer}, nil
}

// limitsConnections reports whether a valid connection string has the pool's own
// limit, which the pool takes out of what is sent to Postgres.
func limitsConnections(dsn string) bool {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return false
	}
	_, limited := cfg.RuntimeParams["pool_max_conns"]
	return limited
}

// Ping reports whether Postgres answers; otherwise the error matches
// ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	return wrap("ping", s.pool.Ping(ctx))
}

// Close waits for borrowed connections and closes them all.
func (s *Store) Close() { s.pool.Close() }
