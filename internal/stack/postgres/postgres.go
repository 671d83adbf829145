package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
)

const (
	role         = "kandev" // superuser of the cluster and owner of the database
	database     = "kandev"
	port         = 5432 // names the socket only
	startTimeout = 60 * time.Second
	stopTimeout  = 60 * time.Second
	pollInterval = 50 * time.Millisecond
	// exitGrace is how long a process that was killed may still have its number
	// before it is taken for another one.
	exitGrace = 10 * time.Second
)

// Config says where the cluster lies.
type Config struct {
	Dir    string // absolute, the cluster's alone; created if it is not there
	Fast   bool   // gives up durability; for tests
	Logger *zap.Logger
}

// Cluster is a running cluster.
type Cluster struct {
	DSN string // of the database of the product

	place    place
	binaries binaries
	logger   *zap.Logger
}

// Start returns the cluster of Dir: the one that runs there already, or else
// it starts it, after creating it if there is none. Concurrent calls for one
// Dir are serialized. Errors name paths of the host; they are for the
// operator's terminal.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	if !filepath.IsAbs(cfg.Dir) || cfg.Logger == nil {
		return nil, errors.New("postgres: an absolute directory and a logger are needed")
	}
	where, err := choosePlace(cfg.Dir)
	if err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(where.base, "lock"))
	if _, err := lock.TryLockContext(ctx, pollInterval); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for another start of the cluster: %w", err), lock.Close())
	}
	cluster, err := start(ctx, where, cfg)
	return cluster, errors.Join(err, lock.Unlock())
}

func start(ctx context.Context, where place, cfg Config) (*Cluster, error) {
	bin, err := findBinaries(usualPlaces, where.clusterVersion())
	if err != nil {
		return nil, err
	}
	c := &Cluster{place: where, binaries: bin, logger: cfg.Logger}
	if socket, err := c.runningAt(ctx); err != nil {
		return nil, err
	} else if socket != "" {
		c.DSN = dsn(socket, database)
		return c, ensureDatabase(ctx, socket)
	}
	if err := c.create(ctx, cfg.Fast); err != nil {
		return nil, err
	}
	socket, err := where.socketDir()
	if err != nil {
		return nil, err
	}
	if err := where.writeFile(filepath.Join(where.data(), settingsFile), settings(where, socket, cfg.Fast)); err != nil {
		return nil, err
	}
	if err := c.launch(ctx); err != nil {
		return nil, err
	}
	c.DSN = dsn(socket, database)
	cfg.Logger.Info("private Postgres cluster started")
	return c, ensureDatabase(ctx, socket)
}

// create makes the data directory under another name first, so that a crash
// leaves none that looks complete.
func (c *Cluster) create(ctx context.Context, fast bool) error {
	if c.place.clusterVersion() != "" {
		return nil
	}
	fresh := filepath.Join(c.place.base, "data.new")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	args := []string{"-D", fresh, "--username", role, "--encoding", "UTF8", "--locale", "C",
		"--auth-local", "trust", "--auth-host", "reject"}
	if fast {
		args = append(args, "--no-sync")
	}
	if err := c.run(ctx, c.binaries.initdb(), args...); err != nil {
		return fmt.Errorf("create the Postgres cluster: %w", err)
	}
	main := filepath.Join(fresh, "postgresql.conf")
	if err := appendLine(main, "include_if_exists = '"+settingsFile+"'"); err != nil {
		return err
	}
	return os.Rename(fresh, c.place.data())
}

func (c *Cluster) launch(ctx context.Context) error {
	log := filepath.Join(c.place.base, "startup.log")
	if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err := c.run(ctx, c.binaries.pgctl(), "start", "-D", c.place.data(), "-l", log, "-w", "-s",
		"-t", seconds(startTimeout))
	if err != nil {
		return fmt.Errorf("start Postgres: %w%s", err, tail(log))
	}
	return nil
}

// Stop ends the server cleanly, disconnecting its clients. It may be repeated,
// and it stops a cluster that another process started.
func (c *Cluster) Stop(ctx context.Context) error {
	// A pid file outlives a crash, and its number may be somebody else's by
	// now: only a server that answers at the recorded socket is signalled.
	socket, err := c.runningAt(ctx)
	if err != nil || socket == "" {
		return err
	}
	err = c.run(ctx, c.binaries.pgctl(), "stop", "-D", c.place.data(), "-m", "fast", "-w", "-s",
		"-t", seconds(stopTimeout))
	if err != nil {
		return fmt.Errorf("stop Postgres: %w", err)
	}
	c.logger.Info("private Postgres cluster stopped")
	return nil
}

// runningAt returns the socket directory of the server that runs in the data
// directory, or "". It waits while that server starts up, recovers or ends.
func (c *Cluster) runningAt(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for began := time.Now(); ; {
		socket := c.place.recordedSocket()
		if socket == "" {
			return "", nil
		}
		err := ping(ctx, socket)
		var pg *pgconn.PgError
		switch {
		case err == nil:
			return socket, nil
		case errors.As(err, &pg) && pg.Code == "57P03": // starting up, or shutting down
		case ctx.Err() == nil && (time.Since(began) > exitGrace || !c.place.processExists()):
			return "", nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return "", fmt.Errorf("the server in %s does not answer: %w", c.place.data(), ctx.Err())
		}
	}
}

func ping(ctx context.Context, socket string) error {
	conn, err := pgx.Connect(ctx, dsn(socket, "postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func ensureDatabase(ctx context.Context, socket string) error {
	conn, err := pgx.Connect(ctx, dsn(socket, "postgres"))
	if err != nil {
		return fmt.Errorf("connect to the new cluster: %w", err)
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize())
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42P04" { // it is there
		err = nil
	}
	return errors.Join(err, conn.Close(ctx))
}

func dsn(socket, name string) string {
	u := url.URL{Scheme: "postgres", User: url.User(role), Path: "/" + name}
	u.RawQuery = url.Values{"host": {socket}, "port": {fmt.Sprint(port)}, "sslmode": {"disable"}}.Encode()
	return u.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f", d.Seconds()) }
