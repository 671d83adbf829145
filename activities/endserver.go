package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/crashpoint"
	"github.com/kandev/recovery/store"
)

// EndServer sends the ownership shutdown to a server that has proven itself in
// this pass. It proves itself again on the way: between the two somebody else
// may have taken its port, and a stop is never sent to a stranger (O-001.4).
// Already ending or absent is success (O-004.7).
func (c *Control) EndServer(ctx context.Context, in calls.EndInput) error {
	record, token, err := c.judged(ctx, in.ServerIdentity)
	if err != nil {
		return err
	}
	peer := c.peer(record, token)
	defer peer.Close()
	_, err = peer.VerifyServer(ctx, c.Home, record.ServerIdentity, token, record.RotationID)
	if err == nil {
		err = peer.Shutdown(ctx)
	}
	if errors.Is(err, client.ErrRefused) || errors.Is(err, errShuttingDown) {
		err = nil
	}
	c.Logger.Info("ownership shutdown", zap.String("server_identity", record.ServerIdentity), zap.Error(err))
	crashpoint.Hit("adoption.ending")
	return failure(err)
}

// judged reads the record and credential of the server that this pass judged. A
// record that names another one by now is a failure for good.
func (c *Control) judged(ctx context.Context, identity string) (store.ControlServer, string, error) {
	record, token, evaluation, err := c.recorded(ctx, identity)
	if err == nil && evaluation.Verdict != "" {
		err = temporal.NewNonRetryableApplicationError("the recorded server is another one now", calls.FailureConflict, nil)
	}
	return record, token, err
}

// AwaitServerEnd succeeds once nothing listens at the recorded endpoint.
func (c *Control) AwaitServerEnd(ctx context.Context, in calls.EndInput) error {
	record, token, err := c.judged(ctx, in.ServerIdentity)
	if err != nil {
		return err
	}
	peer := c.peer(record, token)
	defer peer.Close()
	if _, err = peer.Identity(ctx); errors.Is(err, client.ErrRefused) {
		crashpoint.Hit("adoption.ended")
		return nil
	}
	return temporal.NewApplicationError("the control server has not ended yet", calls.FailureUnanswered, nil)
}

var errShuttingDown = &wire.Error{Code: wire.CodeShuttingDown}

// peer is a client of the recorded server. The caller closes it.
func (c *Control) peer(record store.ControlServer, token string) *client.Client {
	return client.New(client.Config{
		Endpoint: record.Endpoint, Fingerprint: record.Fingerprint, Credential: token, HTTPTimeout: c.ReadTimeout,
	})
}
