package boot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	temporal "go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/kandev/recovery/activities"
	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/internal/backend/api"
	"github.com/kandev/recovery/internal/backend/counters"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/keepalive"
	"github.com/kandev/recovery/internal/backend/liveness"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/backend/pump"
	"github.com/kandev/recovery/internal/backend/survival"
	"github.com/kandev/recovery/internal/config"
	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/internal/sealedcopy"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/seal"
	"github.com/kandev/recovery/worker"
)

// Config is what a boot needs. Home is open, and its owner closes it after Run
// has returned (O-002.4).
type Config struct {
	Settings config.Settings
	Home     *home.Home
	BootID   string
	Logger   *zap.Logger
	// Temporal are the connection options; the environment's TEMPORAL_*.
	Temporal temporal.Options
	// Source is where the next start finds its settings.
	Source config.Source
	// Availability reports whether a control server can outlive this process, and
	// if not, a machine-readable reason (S-005.4). Nil means launch.Availability.
	Availability func() (ok bool, reason string)
}

// teardownTimeout bounds each step of a teardown.
const teardownTimeout = 10 * time.Second

// boot is one run. What it opens it also closes, in reverse order.
type boot struct {
	cfg      Config
	counters *counters.Counters
	survival *survival.Capability
	status   *status
	api      *api.Server

	copy       *sealedcopy.File
	keeper     *keepalive.Keeper // nil with the survival capability off
	store      *store.Store
	temporal   temporal.Client
	executions *execution.Store
	owner      *owner.Owner
	changes    *pump.Notifier
	pumps      *pump.Pumps
	liveness   *liveness.Checker
	acts       worker.Activities
	engine     *worker.Engine

	passthrough passthrough
	pass        atomic.Int64 // newest recovery pass

	mu      sync.Mutex
	closers []func()
}

// Run serves until ctx ends, and returns nil then. It returns an error for what
// waiting cannot mend: an address in use, a schema from a newer program, an
// unusable connection string. With the survival capability on, no agent and no
// control server is stopped, whichever way it returns (S-001.1).
func Run(ctx context.Context, cfg Config) error {
	b := &boot{cfg: cfg, counters: counters.New(cfg.Logger), survival: newSurvival(cfg)}
	b.status = newStatus(cfg, b.survival.State())
	defer b.close()
	b.api = api.New(api.Config{
		Address: cfg.Settings.ServerAddress, Token: cfg.Home.Token(), Status: b.status.page,
		Counters: b.counters, Survival: b.survival, Logger: cfg.Logger,
	})
	address, err := b.api.Listen()
	if err != nil {
		return err
	}
	runtime := home.Runtime{Address: address, BootID: cfg.BootID, StartedAt: b.status.started, PID: pid()}
	if err := cfg.Home.WriteRuntime(runtime); err != nil {
		return err
	}
	b.onClose(func() {
		if err := cfg.Home.RemoveRuntime(); err != nil {
			cfg.Logger.Warn("runtime file not removed", zap.Error(err))
		}
	})
	cfg.Logger.Info("listening", zap.String("address", address))

	run, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- b.recover(run) }()
	select {
	case err := <-failed:
		if err != nil && ctx.Err() == nil {
			return err
		}
		<-ctx.Done()
	case <-ctx.Done():
		cancel()
		<-failed
	}
	cfg.Logger.Info("shutting down", zap.Bool("agents_survive", b.survival.Active()))
	return nil
}

// recover brings the boot from "listening" to "serving", and keeps it there until
// ctx ends.
func (b *boot) recover(ctx context.Context) error {
	sealer, err := seal.Open(b.cfg.Home.Path())
	if err != nil {
		return err
	}
	b.keepAlive(sealer)
	if err := b.openStore(ctx, sealer); err != nil {
		return err
	}
	if err := b.dialTemporal(ctx); err != nil {
		return err
	}
	reports := b.assemble(b.registerAttributes(ctx))
	bootWorker, err := worker.StartBoot(b.temporal, b.cfg.Home.Installation(), b.cfg.BootID, b.acts)
	if err != nil {
		return err
	}
	b.onClose(bootWorker.Stop)
	b.assemblePassthrough()
	passthroughWorker, err := worker.StartPassthrough(b.temporal, b.cfg.Home.Installation(), b.passthrough.instances, b.passthrough.sessions)
	if err != nil {
		return err
	}
	b.onClose(passthroughWorker.Stop)
	b.api.Serve(api.Services{
		Installation: b.cfg.Home.Installation(), BootID: b.cfg.BootID, Store: b.store,
		Executions: b.executions, Owner: b.owner, Engine: engine{b.engine}, Changes: b.changes, Liveness: b.liveness,
		Passthrough: b.passthrough.host(),
	})
	if err := b.runPasses(ctx, reports); err != nil {
		return err
	}
	userWorker, err := worker.StartUser(b.temporal, b.cfg.Home.Installation(), b.acts)
	if err != nil {
		return err
	}
	b.onClose(userWorker.Stop)
	if err := b.resumeRequests(ctx); err != nil {
		return err
	}
	b.status.serving()
	b.cfg.Logger.Info("serving")
	return b.attend(ctx, reports)
}

// assemble builds what lives as long as this boot and returns where the passes
// report. Labelled: the namespace knows the search attributes.
func (b *boot) assemble(labelled bool) <-chan calls.ReportInput {
	inst, s := b.cfg.Home.Installation(), b.cfg.Settings
	b.executions = execution.New()
	b.changes = pump.NewNotifier()
	b.owner = owner.New(owner.Config{
		Logger: b.cfg.Logger, Clock: time.Now, CallTimeout: callTimeout, BeforeUse: b.handOver,
		Superseded: func(server owner.Server) {
			b.counters.CredentialSuperseded(server.Identity, server.RotationID)
			dropped := b.executions.DropServer(server.Identity)
			b.cfg.Logger.Error("another backend drives the control server; its executions are dropped",
				zap.String("server_identity", server.Identity), zap.Int("executions", len(dropped)))
		},
	})
	b.onClose(b.owner.Close)
	b.status.watch(b.owner)
	b.pumps = b.newPumps(b.owner)
	b.onClose(b.pumps.StopAll)
	b.engine = &worker.Engine{
		Client: b.temporal, Installation: inst, BootID: b.cfg.BootID, Attributes: labelled,
		Budgets: worker.Budgets{
			Deadline: s.Agentctl.RecoveryDeadline, ReadTimeout: s.Agentctl.ReadTimeout,
			ReadRetries: s.Agentctl.ReadRetries, LaunchDeadline: s.LaunchDeadline,
		},
	}
	b.liveness = &liveness.Checker{
		Store: b.store, Owner: b.owner, Executions: b.executions, Logger: b.cfg.Logger, Installation: inst,
		BootID: b.cfg.BootID, ReadTimeout: s.Agentctl.ReadTimeout,
	}
	report, reports := b.reports()
	b.acts = worker.Activities{
		Control: &activities.Control{
			Store: b.store, Copy: b.copy, Owner: b.owner, Launch: b.launch, Survival: b.survival.Active(), Counters: b.counters,
			Logger: b.cfg.Logger, Installation: inst,
			BootID: b.cfg.BootID, Home: b.cfg.Home.Path(), ReadTimeout: s.Agentctl.ReadTimeout,
		},
		Inventory: &activities.Inventory{
			Store: b.store, Executions: b.executions, Resumes: b.engine, Counters: b.counters, Logger: b.cfg.Logger,
			Installation: inst, BootID: b.cfg.BootID, Report: report,
		},
		Instances: &activities.Instances{
			Store: b.store, Source: b.owner, Executions: b.executions, Pumps: b.pumps, Counters: b.counters,
			Logger: b.cfg.Logger, Installation: inst, BootID: b.cfg.BootID, ReadTimeout: s.Agentctl.ReadTimeout,
		},
		Sessions: &activities.Sessions{
			Store: b.store, Source: b.owner, Executions: b.executions, Pumps: b.pumps, Liveness: b.liveness, Counters: b.counters,
			Logger: b.cfg.Logger, Installation: inst, BootID: b.cfg.BootID, ReadTimeout: s.Agentctl.ReadTimeout,
		},
	}
	b.onClose(func() { b.bounded(b.acts.Control.EndBound, "control server") })
	return reports
}

func (b *boot) onClose(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closers = append(b.closers, f)
}

// close takes the boot apart: first no request comes in, then what serves them.
func (b *boot) close() {
	b.bounded(b.api.Shutdown, "api")
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.closers) - 1; i >= 0; i-- {
		b.closers[i]()
	}
}

func (b *boot) bounded(f func(context.Context) error, what string) {
	ctx, cancel := context.WithTimeout(context.Background(), teardownTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		b.cfg.Logger.Warn("teardown", zap.String("part", what), zap.Error(err))
	}
}

// engine tells the API's errors apart from the worker's, so that neither
// package knows the other.
type engine struct{ *worker.Engine }

func (e engine) StartResume(ctx context.Context, session string) error {
	return engineError(e.Engine.StartResume(ctx, session))
}

func (e engine) StartStop(ctx context.Context, session, instance, request string) error {
	return engineError(e.Engine.StartStop(ctx, session, instance, request))
}

func engineError(err error) error {
	switch {
	case errors.Is(err, worker.ErrAlreadyResuming):
		return api.ErrAlreadyResuming
	case errors.Is(err, worker.ErrUnavailable):
		return fmt.Errorf("%w: %w", api.ErrEngineUnavailable, err)
	default:
		return err
	}
}
