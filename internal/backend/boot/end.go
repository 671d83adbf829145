package boot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/sealedcopy"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/seal"
)

// endTimeout bounds how long an ownership shutdown may take: every agent may
// use its grace.
const endTimeout = 60 * time.Second

// EndControlServer stops the recorded control server with all its agents, by
// the ownership shutdown and after the proof that it is ours (O-002.9, S-005.5).
// It reports whether there was one to end, and removes the sealed copy of one that
// has ended. The home's lock keeps every backend away meanwhile.
func EndControlServer(ctx context.Context, cfg Config) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	sealer, err := seal.Open(cfg.Home.Path())
	if err != nil {
		return false, err
	}
	copied := sealedcopy.In(cfg.Home.Path(), sealer)
	db, err := store.Open(ctx, cfg.Settings.DatabaseDSN.Reveal(), store.Options{Logger: cfg.Logger, Sealer: sealer})
	if err != nil {
		return false, err
	}
	defer db.Close()
	// A first start that was interrupted may have left no schema.
	if err := db.Migrate(ctx); err != nil {
		return false, err
	}
	record, err := db.GetControlServer(ctx, cfg.Home.Installation())
	if errors.Is(err, store.ErrNoRecord) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the control-server record: %w", err)
	}
	token, err := db.Credential(ctx, cfg.Home.Installation(), record.SecretRef)
	if err != nil {
		return false, fmt.Errorf("read the control server's credential: %w", err)
	}
	peer := client.New(client.Config{
		Endpoint: record.Endpoint, Fingerprint: record.Fingerprint, Credential: token, HTTPTimeout: callTimeout,
	})
	defer peer.Close()
	_, err = peer.VerifyServer(ctx, cfg.Home.Path(), record.ServerIdentity, token, record.RotationID)
	switch {
	case errors.Is(err, client.ErrRefused):
		return false, copied.Remove()
	case isShuttingDown(err):
	case err != nil:
		return false, fmt.Errorf("the process at the recorded endpoint did not prove to be ours, so it is left alone: %w", err)
	default:
		if err := peer.Shutdown(ctx); err != nil && !isShuttingDown(err) {
			return false, fmt.Errorf("ownership shutdown: %w", err)
		}
	}
	cfg.Logger.Info("control server is ending", zap.String("server_identity", record.ServerIdentity))
	if err := awaitEnd(ctx, peer); err != nil {
		return true, err
	}
	return true, copied.Remove()
}

func isShuttingDown(err error) bool {
	return errors.Is(err, &wire.Error{Code: wire.CodeShuttingDown})
}

var errStillThere = errors.New("the control server has not ended yet")

// awaitEnd waits until nothing listens at the endpoint any more.
func awaitEnd(ctx context.Context, peer *client.Client) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		_, err := peer.Identity(ctx)
		if errors.Is(err, client.ErrRefused) {
			return struct{}{}, nil
		}
		return struct{}{}, errStillThere
	}, backoff.WithBackOff(backoff.NewConstantBackOff(retryFrom)), backoff.WithMaxElapsedTime(0))
	return err
}
