package activities

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/launch"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/counters"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/crashpoint"
	"github.com/kandev/recovery/internal/sealedcopy"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// Control is the recorded control server as a peer: locating, proving and
// adopting it. What it learns and must not record stays in its memory, for the
// boot's life.
type Control struct {
	Store *store.Store
	// Copy is written before every transaction that records a server (B-2).
	Copy  *sealedcopy.File
	Owner *owner.Owner
	// Launch starts a control server of this backend's own. It ends by itself
	// unless it is told that it was recorded (B-26).
	Launch func(ctx context.Context) (*launch.Launched, error)
	// Survival: the capability is on, so that servers are adopted and outlive
	// this backend.
	Survival     bool
	Counters     *counters.Counters
	Logger       *zap.Logger
	Installation string
	BootID       string
	Home         string
	ReadTimeout  time.Duration

	mu       sync.Mutex
	replaced replacement
	launched *launch.Launched // by this boot
}

// replacement is a credential that the server issued and Postgres does not hold
// yet.
type replacement struct {
	issued wire.Issued
	record store.ControlServer
}

// LocateServer reads the control-server record. A record that cannot be read is
// an error, never "not recorded" (O-001.8).
func (c *Control) LocateServer(ctx context.Context, _ calls.Pass) (calls.Located, error) {
	record, err := c.Store.GetControlServer(ctx, c.Installation)
	switch {
	case errors.Is(err, store.ErrNoRecord):
		return calls.Located{}, nil
	case err != nil:
		return calls.Located{}, failure(err)
	}
	crashpoint.Hit("adoption.located")
	_, server, err := c.Owner.Client()
	if err != nil && !errors.Is(err, owner.ErrNoServer) {
		return calls.Located{}, failure(err)
	}
	return calls.Located{
		Recorded: true, ServerIdentity: record.ServerIdentity,
		InUse: err == nil && server.Identity == record.ServerIdentity && server.RotationID == record.RotationID,
	}, nil
}

// EvaluateServer asks the recorded endpoint for identity, proof and
// capabilities, in that order; the first that fails is the reason (O-001.3).
// Nothing secret is sent (O-001.10). A server that did not answer is a
// retryable error, so that the workflow's budget applies.
func (c *Control) EvaluateServer(ctx context.Context, in calls.EvaluateInput) (calls.Evaluation, error) {
	if c.Survival {
		c.Counters.AdoptionAttempted(in.Pass.Number, in.ServerIdentity)
	}
	record, token, evaluation, err := c.recorded(ctx, in.ServerIdentity)
	if err != nil || evaluation.Reason == recovery.RefusedIdentityMismatch {
		return evaluation, err
	}
	peer := c.peer(record, "")
	defer peer.Close()
	if evaluation.Reason == recovery.RefusedCredentialUnavailable {
		evaluation, err = identify(ctx, peer, record)
	} else {
		var identity wire.Identity
		identity, err = peer.VerifyServer(ctx, c.Home, record.ServerIdentity, token, record.RotationID)
		evaluation, err = verdict(identity, err)
	}
	if err == nil {
		c.Logger.Info("control server evaluated", zap.String("server_identity", record.ServerIdentity),
			zap.String("outcome", string(evaluation.Verdict)), zap.String("reason", string(evaluation.Reason)))
	}
	crashpoint.Hit("adoption.evaluated")
	return evaluation, err
}

// recorded reads record and credential. A verdict in the evaluation means that
// the credential is unreadable, which is a reason to refuse; a store that did
// not answer is an error.
func (c *Control) recorded(ctx context.Context, identity string) (store.ControlServer, string, calls.Evaluation, error) {
	record, err := c.Store.GetControlServer(ctx, c.Installation)
	if err != nil {
		return record, "", calls.Evaluation{}, failure(err)
	}
	if record.ServerIdentity == "" || record.ServerIdentity != identity {
		return record, "", refusedFor(recovery.RefusedIdentityMismatch), nil
	}
	token, err := c.Store.Credential(ctx, c.Installation, record.SecretRef)
	switch {
	case errors.Is(err, store.ErrSecretMissing), errors.Is(err, store.ErrSecretSealed):
		return record, "", refusedFor(recovery.RefusedCredentialUnavailable), nil
	case err != nil:
		return record, "", calls.Evaluation{}, failure(err)
	}
	return record, token, calls.Evaluation{}, nil
}

// identify evaluates a server for which there is no readable credential: what
// comes before that in the order of reasons is asked all the same, and nothing
// else (O-001.6, O-001.9).
func identify(ctx context.Context, peer *client.Client, record store.ControlServer) (calls.Evaluation, error) {
	identity, err := peer.Identity(ctx)
	switch {
	case err != nil:
		return verdict(identity, err)
	case identity.ServerIdentity != record.ServerIdentity:
		return refusedFor(recovery.RefusedIdentityMismatch), nil
	default:
		return refusedFor(recovery.RefusedCredentialUnavailable), nil
	}
}

func refusedFor(reason recovery.RefusalReason) calls.Evaluation {
	return calls.Evaluation{Verdict: recovery.VerdictRefused, Reason: reason}
}

// verdict maps what verification said.
func verdict(identity wire.Identity, err error) (calls.Evaluation, error) {
	var answer *wire.Error
	switch {
	case err == nil:
		if missing := missingCapabilities(identity.Capabilities); len(missing) > 0 {
			return calls.Evaluation{
				Verdict: recovery.VerdictIncompatible, Reason: recovery.RefusedCapabilityIncompatibility,
				Advertised: identity.Capabilities, Missing: missing,
			}, nil
		}
		return calls.Evaluation{Verdict: recovery.VerdictAdoptable, Advertised: identity.Capabilities}, nil
	case errors.Is(err, client.ErrRefused):
		return calls.Evaluation{Verdict: recovery.VerdictFresh}, nil
	case errors.As(err, &answer) && answer.Code == wire.CodeShuttingDown:
		return calls.Evaluation{Verdict: recovery.VerdictFresh}, nil
	case errors.Is(err, client.ErrIdentity):
		return refusedFor(recovery.RefusedIdentityMismatch), nil
	case errors.Is(err, client.ErrProof), answer != nil:
		return refusedFor(recovery.RefusedAuthenticationFailure), nil
	default:
		return calls.Evaluation{}, failure(err)
	}
}

// missingCapabilities is what this build requires and the server lacks. It is a
// comparison of sets, never of versions (O-004.1).
func missingCapabilities(advertised []string) []string {
	var missing []string
	for _, required := range wire.Capabilities() {
		if !slices.Contains(advertised, required) {
			missing = append(missing, required)
		}
	}
	return missing
}

// RotateCredential has the proven server replace its credential and begins to
// renew ownership with the replacement at once (O-003.8). The replacement stays
// in memory until StoreCredential has written it; a retry after a lost answer
// presents the stored credential again and gets the same replacement (O-002.10).
func (c *Control) RotateCredential(ctx context.Context, in calls.RotateInput) (calls.Rotated, error) {
	record, token, evaluation, err := c.recorded(ctx, in.ServerIdentity)
	if err != nil {
		return calls.Rotated{}, err
	}
	if evaluation.Verdict != "" {
		return calls.Rotated{Refused: true}, nil
	}
	peer := c.peer(record, token)
	defer peer.Close()
	issued, err := peer.Rotate(ctx)
	var answer *wire.Error
	switch {
	case errors.As(err, &answer) && answer.Code == wire.CodeShuttingDown:
		return calls.Rotated{ShuttingDown: true}, nil
	case answer != nil:
		c.Logger.Warn("rotation refused", zap.String("reason", string(answer.Code)))
		return calls.Rotated{Refused: true}, nil
	case err != nil:
		return calls.Rotated{}, failure(err)
	}
	crashpoint.Hit("adoption.rotated")
	c.mu.Lock()
	c.replaced = replacement{issued: issued, record: record}
	c.mu.Unlock()
	c.Owner.Use(c.server(record, issued))
	return calls.Rotated{RotationID: issued.RotationID}, nil
}

// StoreCredential writes the replacement, secret and record in one transaction.
func (c *Control) StoreCredential(ctx context.Context, in calls.RotationInput) error {
	c.mu.Lock()
	pending := c.replaced
	c.mu.Unlock()
	if pending.issued.RotationID != in.RotationID {
		return failure(owner.ErrNoServer)
	}
	record := pending.record
	record.RotationID, record.BootID = in.RotationID, c.BootID
	if err := c.Copy.Write(copyOf(record, pending.issued)); err != nil {
		c.Logger.Error("replacement credential not stored yet", zap.Error(err))
		return failure(err)
	}
	crashpoint.Hit("adoption.copied")
	if err := c.Store.PutControlServer(ctx, c.Installation, record, pending.issued.Credential); err != nil {
		c.Logger.Warn("replacement credential not stored yet", zap.Error(err))
		return failure(err)
	}
	crashpoint.Hit("adoption.stored")
	c.dropSecretsOfGoneServers(ctx)
	return nil
}

// ConfirmRotation tells the server that the replacement is durable; from then
// on it rejects the superseded credential (O-002.1, O-002.7).
func (c *Control) ConfirmRotation(ctx context.Context, in calls.RotationInput) error {
	peer, _, err := c.Owner.Client()
	if err != nil {
		return failure(err)
	}
	if _, err := peer.Confirm(ctx, in.RotationID); err != nil {
		return failure(err)
	}
	crashpoint.Hit("adoption.confirmed")
	return nil
}

func (c *Control) server(record store.ControlServer, issued wire.Issued) owner.Server {
	return owner.Server{
		Identity: record.ServerIdentity, Endpoint: record.Endpoint, Fingerprint: record.Fingerprint,
		Home: c.Home, Credential: issued.Credential, RotationID: issued.RotationID, Adopted: true,
		UnownedPeriod: time.Duration(issued.UnownedPeriodMS) * time.Millisecond,
		PID:           record.PID, ProcessStart: record.ProcessStart,
	}
}
