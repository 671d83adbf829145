package boot

import (
	"context"
	"errors"
	"time"

	"github.com/kandev/recovery/internal/backend/keepalive"
	"github.com/kandev/recovery/internal/sealedcopy"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/seal"
)

// keepAlive keeps the control server that an earlier backend left from ending
// itself until this one has a server in use (B-2). With the capability off there
// is nothing to keep: the pass ends what is left (S-005.5).
func (b *boot) keepAlive(sealer *seal.Key) {
	b.copy = sealedcopy.In(b.cfg.Home.Path(), sealer)
	if !b.survival.Active() {
		return
	}
	b.keeper = keepalive.Start(keepalive.Config{
		Home: b.cfg.Home.Path(), Copy: b.copy, Logger: b.cfg.Logger, Clock: time.Now, CallTimeout: callTimeout,
	})
	b.onClose(b.keeper.Stop)
	b.status.keeping(b.keeper)
}

// preferStore has the keep-alive believe Postgres from now on.
func (b *boot) preferStore() {
	if b.keeper == nil {
		return
	}
	b.keeper.Prefer(b.recorded)
	b.onClose(b.keeper.Stop) // before the store that it asks
}

// handOver ends the keep-alive when a server comes into use.
func (b *boot) handOver() {
	if b.keeper != nil {
		b.keeper.Stop()
	}
}

// recorded is the control server of the record, with its credential.
func (b *boot) recorded(ctx context.Context) (sealedcopy.Server, error) {
	record, err := b.store.GetControlServer(ctx, b.cfg.Home.Installation())
	if errors.Is(err, store.ErrNoRecord) {
		return sealedcopy.Server{}, keepalive.ErrNotRecorded
	}
	if err != nil {
		return sealedcopy.Server{}, err
	}
	token, err := b.store.Credential(ctx, b.cfg.Home.Installation(), record.SecretRef)
	return sealedcopy.Server{
		Identity: record.ServerIdentity, Endpoint: record.Endpoint, Fingerprint: record.Fingerprint,
		RotationID: record.RotationID, Credential: token,
	}, err
}
