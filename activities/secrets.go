package activities

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/backend/liveness"
	"github.com/kandev/recovery/recovery"
)

// sweepTimeout bounds the removal of secrets that nothing needs any more.
const sweepTimeout = 2 * time.Second

// dropSecretsOfGoneServers removes the credentials of servers that the record
// does not name any more and whose processes are proven gone, by pid and start
// time (B-12). The credential of one that may still live is kept: it was left
// untouched (O-001.9), or it could not be ended (O-004.7), and this is all that
// could still end it. Nothing depends on the removal, so a failure is left to
// the next boot.
func (c *Control) dropSecretsOfGoneServers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	retained, err := c.Store.RetainedCredentials(ctx, c.Installation)
	if err != nil {
		c.Logger.Warn("credentials of earlier control servers not looked through", zap.Error(err))
		return
	}
	for _, r := range retained {
		if liveness.Process(r.PID, r.ProcessStart) != recovery.Absent {
			continue
		}
		if err := c.Store.DropRetainedCredential(ctx, c.Installation, r.SecretRef); err != nil {
			c.Logger.Warn("credential of an earlier control server not removed", zap.Error(err))
			return
		}
		c.Logger.Info("credential of an ended control server removed", zap.String("server_identity", r.ServerIdentity))
	}
}
