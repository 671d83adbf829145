package boot

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/internal/backend/liveness"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/recovery"
)

// lookInterval is how often the process of the control server is looked for. It
// is one read of the process table.
const lookInterval = 2 * time.Second

// attend watches over the control server in use until ctx ends. One whose process
// is proven gone, by pid and start identity, is given up, and another recovery
// pass does what the next boot would: it settles the sessions, each by its own
// agent, and starts a server (S-003.6). One that only does not answer is left
// alone.
func (b *boot) attend(ctx context.Context, reports <-chan calls.ReportInput) error {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		_, server, err := b.owner.Client()
		if err != nil || liveness.Process(server.PID, server.ProcessStart) != recovery.Absent {
			continue
		}
		if err := b.replace(ctx, server, reports); err != nil {
			return err
		}
	}
}

func (b *boot) replace(ctx context.Context, gone owner.Server, reports <-chan calls.ReportInput) error {
	if !b.owner.ReportGone(gone) {
		return nil
	}
	dropped := b.executions.DropServer(gone.Identity)
	b.cfg.Logger.Warn("starting a recovery pass for what the control server had", zap.Int("executions", len(dropped)))
	if err := b.runPasses(ctx, reports); err != nil {
		return err
	}
	b.status.serving()
	return nil
}
