package bench

import (
	"context"
	"fmt"
	"time"

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
}

func openPeers(ctx context.Context, installation, dsn, home string) (*peers, error) {
	p := &peers{installation: installation}
	sealer, err := seal.Open(home)
	if err != nil {
		return nil, err
	}
	if p.store, err = store.Open(ctx, dsn, store.Options{Logger: zap.NewNop(), Sealer: sealer}); err != nil {
		return nil, err
	}
	record, err := p.store.GetControlServer(ctx, p.installation)
	if err != nil {
		p.store.Close()
		return nil, fmt.Errorf("read the control-server record: %w", err)
	}
	token, err := p.store.Credential(ctx, p.installation, record.SecretRef)
	if err != nil {
		p.store.Close()
		return nil, fmt.Errorf("read the credential: %w", err)
	}
	p.control = client.New(client.Config{
		Endpoint: record.Endpoint, Fingerprint: record.Fingerprint, Credential: token, HTTPTimeout: 10 * time.Second,
	})
	return p, nil
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
	p.control.Close()
	p.store.Close()
}
