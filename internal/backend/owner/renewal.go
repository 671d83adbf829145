package owner

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
)

const (
	// renewalsPerPeriod: strictly more than three, so that two failures in a row
	// do not cost the ownership (O-003.2).
	renewalsPerPeriod = 4
	// minInterval keeps a nonsensical period from a busy loop.
	minInterval = 10 * time.Millisecond
)

// RenewalInterval is how often an owner renews a server with this unowned
// period; at least 10 ms.
func RenewalInterval(period time.Duration) time.Duration {
	return max(period/renewalsPerPeriod, minInterval)
}

// renew claims the server at every tick until its tenure ends. A failed claim is
// tried again at the next tick: it shortens nothing (O-003.3).
func (o *Owner) renew(ctx context.Context, t *tenure) {
	defer close(t.done)
	period := t.server.UnownedPeriod
	ticker := time.NewTicker(RenewalInterval(period))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		reported, err := claim(ctx, t.client, RenewalInterval(period)/2)
		switch {
		case ctx.Err() != nil:
			return
		case Rejected(err):
			o.ReportSuperseded(t.server)
			return
		case err != nil:
			o.cfg.Logger.Warn("ownership renewal failed; next try in one interval",
				zap.String("server_identity", t.server.Identity), zap.Error(err))
			continue
		}
		o.renewed(t)
		if reported > 0 && reported != period {
			period = reported
			ticker.Reset(RenewalInterval(period))
		}
	}
}

func claim(ctx context.Context, c *client.Client, limit time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := c.Claim(ctx)
	return time.Duration(answer.UnownedPeriodMS) * time.Millisecond, err
}

func (o *Owner) renewed(t *tenure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.lastRenewal = o.cfg.Clock()
}
