package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/launch"
	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/crashpoint"
	"github.com/kandev/recovery/internal/sealedcopy"
	"github.com/kandev/recovery/store"
)

// abortTimeout bounds the ending of a server that could not be recorded.
const abortTimeout = 10 * time.Second

// StartServer starts an own control server, records it with its credential in
// one transaction, and only then lets it live without its parent. One that
// cannot be recorded is ended again at once (B-26). Repeated in a boot that has
// a server, it does nothing.
func (c *Control) StartServer(ctx context.Context, _ calls.Pass) (calls.Started, error) {
	if _, server, err := c.Owner.Client(); err == nil {
		return calls.Started{ServerIdentity: server.Identity}, nil
	} else if !errors.Is(err, owner.ErrNoServer) {
		return calls.Started{}, failure(err)
	}
	launched, err := c.Launch(ctx)
	if err != nil {
		c.Logger.Error("control server not started", zap.Error(err))
		return calls.Started{}, temporal.NewApplicationError("the control server could not be started; the backend's log says why", calls.FailureUnanswered, nil)
	}
	crashpoint.Hit("start.launched")
	start, err := c.record(ctx, launched)
	if err != nil {
		abort, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		if stopErr := launched.Abort(abort); stopErr != nil {
			c.Logger.Error("unrecorded control server did not end", zap.String("server_identity", launched.ServerIdentity), zap.Error(stopErr))
		}
		c.Logger.Warn("control server not recorded, ended again", zap.String("server_identity", launched.ServerIdentity), zap.Error(err))
		return calls.Started{}, failure(err)
	}
	crashpoint.Hit("start.recorded")
	if err := launched.Recorded(); err != nil {
		// It ends by itself: the record names a server that is gone, which the
		// next attempt replaces.
		return calls.Started{}, failure(err)
	}
	if c.Survival {
		c.Counters.ServerDetached(launched.ServerIdentity)
	}
	c.mu.Lock()
	c.launched = launched
	c.mu.Unlock()
	c.Owner.Use(owner.Server{
		Identity: launched.ServerIdentity, Endpoint: launched.Endpoint, Fingerprint: launched.Fingerprint,
		Home: c.Home, Credential: launched.Issued.Credential, RotationID: launched.Issued.RotationID,
		UnownedPeriod: time.Duration(launched.Issued.UnownedPeriodMS) * time.Millisecond,
		PID:           launched.PID, ProcessStart: start,
	})
	c.dropSecretsOfGoneServers(ctx)
	return calls.Started{ServerIdentity: launched.ServerIdentity}, nil
}

// record reads what the server says of itself behind authentication and writes
// record and credential. It returns the start identity of the server's process.
func (c *Control) record(ctx context.Context, launched *launch.Launched) (start string, err error) {
	start, err = process.Identity(launched.PID)
	if err != nil {
		return "", fmt.Errorf("start identity of the control server: %w", err)
	}
	peer := client.New(client.Config{
		Endpoint: launched.Endpoint, Fingerprint: launched.Fingerprint,
		Credential: launched.Issued.Credential, HTTPTimeout: c.ReadTimeout,
	})
	defer peer.Close()
	identity, err := peer.Identity(ctx)
	if err != nil {
		return "", err
	}
	details, err := peer.Details(ctx)
	if err != nil {
		return "", err
	}
	return start, c.put(ctx, store.ControlServer{
		ServerIdentity: launched.ServerIdentity, Endpoint: launched.Endpoint, Fingerprint: launched.Fingerprint,
		RotationID: launched.Issued.RotationID, Capabilities: identity.Capabilities, LogPath: details.DiagnosticLogPath,
		PID: launched.PID, ProcessStart: start, BootID: c.BootID,
	}, launched.Issued)
}

// put records a server of this boot's own: sealed copy first, then Postgres. The
// copy of a server that was not recorded after all gives way to the one before,
// which Postgres still names.
func (c *Control) put(ctx context.Context, record store.ControlServer, issued wire.Issued) error {
	restore, err := c.Copy.Replace(copyOf(record, issued))
	if err != nil {
		return err
	}
	crashpoint.Hit("start.copied")
	if err := c.Store.PutControlServer(ctx, c.Installation, record, issued.Credential); err != nil {
		return errors.Join(err, restore())
	}
	return nil
}

func copyOf(record store.ControlServer, issued wire.Issued) sealedcopy.Server {
	return sealedcopy.Server{
		Identity: record.ServerIdentity, Endpoint: record.Endpoint, Fingerprint: record.Fingerprint,
		RotationID: issued.RotationID, Credential: issued.Credential,
		UnownedPeriod: time.Duration(issued.UnownedPeriodMS) * time.Millisecond,
	}
}

// EndBound ends the control server that this boot started if it is tied to this
// process, with all its agents; a detached one is left alone (S-001.1, S-005.1).
func (c *Control) EndBound(ctx context.Context) error {
	c.mu.Lock()
	launched := c.launched
	c.mu.Unlock()
	if launched == nil {
		return nil
	}
	if err := launched.Abort(ctx); err != nil && !errors.Is(err, launch.ErrRecorded) {
		return fmt.Errorf("end the bound control server: %w", err)
	}
	return nil
}
