package keepalive

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/sealedcopy"
)

// shortestPeriod stands for a period that is not known: no server has a shorter
// one (O-003.7).
const shortestPeriod = time.Minute

// run is a plain ticker, as every renewal of ownership is (W-2).
func (k *Keeper) run(ctx context.Context) {
	defer close(k.done)
	every := owner.RenewalInterval(shortestPeriod)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if next := k.round(ctx); next != every {
			every = next
			ticker.Reset(every)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// round renews once, if there is a server to renew, and returns when to do so
// again.
func (k *Keeper) round(ctx context.Context) (next time.Duration) {
	server, err := k.server(ctx)
	next = interval(server.UnownedPeriod)
	switch {
	case errors.Is(err, ErrNotRecorded), errors.Is(err, sealedcopy.ErrAbsent):
		k.set(State{})
		return next
	case err != nil:
		k.cfg.Logger.Warn("control server not kept alive", zap.Error(err))
		return next
	case server.Identity == k.refused.Identity && server.RotationID == k.refused.RotationID:
		return next
	}
	means, period, err := k.renew(ctx, server)
	if ctx.Err() != nil {
		return next
	}
	if err != nil {
		k.failed(server, err)
		return next
	}
	k.renewed(server, means)
	return interval(period)
}

func interval(period time.Duration) time.Duration {
	if period <= 0 {
		period = shortestPeriod
	}
	return owner.RenewalInterval(period)
}

// server asks Postgres where that is there, and the sealed copy where it is not.
func (k *Keeper) server(ctx context.Context) (sealedcopy.Server, error) {
	k.mu.Lock()
	prefer := k.prefer
	k.mu.Unlock()
	if prefer != nil {
		asking, cancel := context.WithTimeout(ctx, k.cfg.CallTimeout)
		defer cancel()
		server, err := prefer(asking)
		if err == nil || errors.Is(err, ErrNotRecorded) {
			return server, err
		}
		k.cfg.Logger.Info("the sealed copy stands for the control-server record", zap.Error(err))
	}
	return k.cfg.Copy.Read()
}

// renew has the server prove itself, and claims it. A server that rejects the
// credential as superseded has rotated for a backend that died before it could
// store the replacement. Presenting the superseded credential again, and only
// that, gets the same rotation again, which renews; the replacement is for
// adoptions and is dropped here. The order matters: a credential that may be the
// newest is never rotated, because its replacement would be lost and with it
// the server (O-002.10).
func (k *Keeper) renew(ctx context.Context, server sealedcopy.Server) (Means, time.Duration, error) {
	peer := client.New(client.Config{
		Endpoint: server.Endpoint, Fingerprint: server.Fingerprint, Credential: server.Credential,
		HTTPTimeout: min(k.cfg.CallTimeout, interval(server.UnownedPeriod)/2),
	})
	defer peer.Close()
	identity, err := peer.VerifyServer(ctx, k.cfg.Home, server.Identity, server.Credential, server.RotationID)
	if err != nil {
		return "", 0, err
	}
	means := ByClaim
	_, err = peer.Claim(ctx)
	if errors.Is(err, client.ErrSuperseded) {
		means = ByReplay
		_, err = peer.Rotate(ctx)
	}
	return means, time.Duration(identity.UnownedPeriodMS) * time.Millisecond, err
}

func (k *Keeper) renewed(server sealedcopy.Server, means Means) {
	now := k.cfg.Clock()
	k.mu.Lock()
	if k.state.ServerIdentity != server.Identity {
		k.state = State{ServerIdentity: server.Identity, Since: now}
	}
	k.state.LastRenewal, k.state.Means = now, means
	k.mu.Unlock()
	k.cfg.Logger.Info("control server kept alive until this backend can recover",
		zap.String("server_identity", server.Identity), zap.String("means", string(means)))
}

// failed tells a server that gave no answer, which is asked again at the next
// tick, from one that will never answer otherwise and is left alone from now on.
func (k *Keeper) failed(server sealedcopy.Server, err error) {
	forGood := errors.Is(err, client.ErrIdentity) || errors.Is(err, client.ErrProof) ||
		errors.Is(err, errShuttingDown) || owner.Rejected(err)
	if forGood {
		k.refused = server
		k.set(State{})
	}
	k.cfg.Logger.Warn("control server not kept alive",
		zap.String("server_identity", server.Identity), zap.Bool("left_alone", forGood), zap.Error(err))
}

var errShuttingDown = &wire.Error{Code: wire.CodeShuttingDown}
