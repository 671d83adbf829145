package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/seal"
)

// peers are the control server and Postgres, as the backend reaches them.
type peers struct {
	installation string
	store        *store.Store
	control      *client.Client
	db           *pgxpool.Pool // as the store's own, for what the store does not do
}

func openPeers(ctx context.Context, installation, dsn, home string) (_ *peers, err error) {
	p := &peers{installation: installation}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	sealer, err := seal.Open(home)
	if err != nil {
		return nil, err
	}
	if p.store, err = store.Open(ctx, dsn, store.Options{Logger: zap.NewNop(), Sealer: sealer}); err != nil {
		return nil, err
	}
	if p.db, err = openPool(ctx, dsn); err != nil {
		return nil, err
	}
	record, err := p.store.GetControlServer(ctx, p.installation)
	if err != nil {
		return nil, fmt.Errorf("read the control-server record: %w", err)
	}
	token, err := p.store.Credential(ctx, p.installation, record.SecretRef)
	if err != nil {
		return nil, fmt.Errorf("read the credential: %w", err)
	}
	p.control = client.New(client.Config{
		Endpoint: record.Endpoint, Fingerprint: record.Fingerprint, Credential: token, HTTPTimeout: 10 * time.Second,
	})
	return p, nil
}

// openPool opens connections of the kind and number that the store has.
func openPool(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.MaxConns = store.DefaultConnections
	return pgxpool.NewWithConfig(ctx, cfg)
}

// observe reads what a recovery pass reads of one session.
func (p *peers) observe(ctx context.Context, session, instance string) error {
	if _, err := p.control.Get(ctx, instance); err != nil {
		return fmt.Errorf("read the instance: %w", err)
	}
	if _, err := p.control.TurnOutcome(ctx, instance); err != nil {
		return fmt.Errorf("read the kept outcome: %w", err)
	}
	record, err := p.store.GetRecord(ctx, p.installation, session)
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	if _, err := p.store.GetProfile(ctx, p.installation, record.ProfileID); err != nil {
		return fmt.Errorf("read the profile: %w", err)
	}
	if _, err := p.store.OpenTurn(ctx, p.installation, session); err != nil {
		return fmt.Errorf("read the open turn: %w", err)
	}
	return nil
}

func (p *peers) close() {
	if p.control != nil {
		p.control.Close()
	}
	if p.db != nil {
		p.db.Close()
	}
	if p.store != nil {
		p.store.Close()
	}
}

// committed is the number of events that are committed, over all instances.
func (p *peers) committed(ctx context.Context) (n int64, err error) {
	err = p.db.QueryRow(ctx, `SELECT coalesce(sum(seq), 0)::bigint FROM event_cursors WHERE installation_id = $1`,
		p.installation).Scan(&n)
	return n, err
}

// awaitCommitted waits until n events are committed, and not one more.
func (p *peers) awaitCommitted(ctx context.Context, n int64) error {
	return await(ctx, fmt.Sprintf("%d events are committed", n), func(ctx context.Context) (bool, error) {
		committed, err := p.committed(ctx)
		if committed > n {
			return false, fmt.Errorf("%d events are committed instead of %d", committed, n)
		}
		return committed == n, err
	})
}
