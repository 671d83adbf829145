package boot

import (
	"context"
	"sync"
	"time"

	"github.com/kandev/recovery/activities"
	"github.com/kandev/recovery/agentctl/launch"
	"github.com/kandev/recovery/internal/backend/api"
	"github.com/kandev/recovery/internal/backend/tied"
	"github.com/kandev/recovery/worker"
)

const (
	// passthroughLog is the log of the tied control server: it lives at the same
	// time as the one in use.
	passthroughLog = "agentctl-passthrough"
	// tiedLaunchTimeout bounds the start of a tied control server.
	tiedLaunchTimeout = 30 * time.Second
	// settleUpTo is the longest delay between two looks at agents that may still be
	// ending. They have a grace of some seconds.
	settleUpTo = 30 * time.Second
)

// passthrough is what serves passthrough sessions: the same parts as for all
// others, on a control server that is tied to this process (S-005.3).
type passthrough struct {
	server    *tied.Server
	engine    *worker.Engine
	instances *activities.Instances
	sessions  *activities.Sessions
}

// assemblePassthrough builds it beside what assemble has built, and begins to
// settle the sessions whose agents went with an earlier backend.
func (b *boot) assemblePassthrough() {
	wake := make(chan struct{}, 1)
	server := tied.New(tied.Config{
		Launch: b.launchTied, LaunchTimeout: tiedLaunchTimeout, CallTimeout: callTimeout, Logger: b.cfg.Logger,
		Ended: func(identity string) {
			b.executions.DropServer(identity)
			select {
			case wake <- struct{}{}:
			default:
			}
		},
	})
	pumps := b.newPumps(server)
	b.onClose(pumps.StopAll)
	engine, instances, sessions := *b.engine, *b.acts.Instances, *b.acts.Sessions
	engine.Passthrough = true
	instances.Source, instances.Pumps = tied.OnDemand{Server: server}, pumps
	sessions.Source, sessions.Pumps = tied.OnDemand{Server: server}, pumps
	b.passthrough = passthrough{server: server, engine: &engine, instances: &instances, sessions: &sessions}
	b.settlePassthrough(wake)
	b.onClose(func() { b.bounded(server.Close, "control server of passthrough sessions") })
}

func (b *boot) settlePassthrough(wake <-chan struct{}) {
	settler := &tied.Settler{
		Store: b.store, Server: b.passthrough.server, Resumes: b.engine, Notifier: b.changes, Logger: b.cfg.Logger,
		Installation: b.cfg.Home.Installation(), BootID: b.cfg.BootID, RetryFrom: retryFrom, RetryUpTo: settleUpTo,
	}
	ctx, cancel := context.WithCancel(context.Background())
	var settling sync.WaitGroup
	settling.Go(func() { settler.Run(ctx, wake) })
	b.onClose(func() { cancel(); settling.Wait() })
}

// launchTied starts a control server that ends with this process. It leaves the
// configured port to the one that may outlive it.
func (b *boot) launchTied(ctx context.Context) (*launch.Launched, error) {
	config := b.startConfig()
	config.Detached, config.Port, config.LogName = false, 0, passthroughLog
	return b.start(ctx, config)
}

// engineOf starts the workflows of sessions of the mode.
func (b *boot) engineOf(passthrough bool) *worker.Engine {
	if passthrough {
		return b.passthrough.engine
	}
	return b.engine
}

func (p passthrough) host() api.Host { return api.Host{Server: p.server, Engine: engine{p.engine}} }
