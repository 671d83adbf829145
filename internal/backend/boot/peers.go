package boot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cenkalti/backoff/v5"
	temporal "go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/launch"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/survival"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/seal"
	"github.com/kandev/recovery/userapi"
	"github.com/kandev/recovery/worker"
)

// callTimeout bounds a call to the control server outside the recovery pass,
// where the read budget applies.
const callTimeout = 10 * time.Second

// attributesTimeout bounds the registration of search attributes, which holds up
// recovery while it lasts; it takes some 30 ms.
const attributesTimeout = 3 * time.Second

// retryFrom and retryUpTo pace the attempts to reach Postgres and Temporal.
const (
	retryFrom = 100 * time.Millisecond
	retryUpTo = 3 * time.Second
)

// postgres is the first peer that a boot waits for, as the status page names it.
const postgres = "Postgres"

func pid() int { return os.Getpid() }

// wait repeats op until it succeeds, fails for good, or ctx ends; what it waits
// for is on the status page meanwhile (W-8).
func (b *boot) wait(ctx context.Context, phase userapi.Phase, what string, op func() error) error {
	b.status.waiting(phase, what)
	delay := backoff.NewExponentialBackOff()
	delay.InitialInterval, delay.MaxInterval = retryFrom, retryUpTo
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := op()
		var final *backoff.PermanentError
		if err != nil && !errors.As(err, &final) && ctx.Err() == nil {
			b.cfg.Logger.Warn("waiting", zap.String("for", what), zap.Error(err))
		}
		return struct{}{}, err
	}, backoff.WithBackOff(delay), backoff.WithMaxElapsedTime(0))
	return err
}

// openStore waits for Postgres and brings its schema up to date.
func (b *boot) openStore(ctx context.Context, sealer *seal.Key) error {
	db, err := store.Open(ctx, b.cfg.Settings.DatabaseDSN.Reveal(), store.Options{Logger: b.cfg.Logger, Sealer: sealer})
	if err != nil {
		return err
	}
	b.store = db
	b.onClose(db.Close)
	err = b.wait(ctx, userapi.PhaseWaitingPostgres, postgres, func() error {
		if err := db.Migrate(ctx); err != nil {
			if errors.Is(err, store.ErrSchemaNewer) {
				return backoff.Permanent(err)
			}
			return err
		}
		return db.EnsureInstallation(ctx, b.cfg.Home.Installation())
	})
	if err != nil {
		return err
	}
	b.preferStore()
	return nil
}

// dialTemporal waits for Temporal.
func (b *boot) dialTemporal(ctx context.Context) error {
	options := b.cfg.Temporal
	options.Logger = temporalLog{b.cfg.Logger.Sugar()}
	return b.wait(ctx, userapi.PhaseWaitingTemporal, "Temporal", func() error {
		c, err := temporal.DialContext(ctx, options)
		if err != nil {
			return err
		}
		b.temporal = c
		b.onClose(c.Close)
		return nil
	})
}

// registerAttributes reports whether workflows can be labelled in this
// namespace. Where they cannot, operators lose a way to search; recovery goes on
// (B-25).
func (b *boot) registerAttributes(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, attributesTimeout)
	defer cancel()
	namespace := cmp.Or(b.cfg.Temporal.Namespace, temporal.DefaultNamespace)
	if err := worker.RegisterAttributes(ctx, b.temporal, namespace); err != nil {
		b.cfg.Logger.Warn("workflows are started without search attributes", zap.Error(err))
		return false
	}
	return true
}

// launch starts a control server as the settings say.
func (b *boot) launch(ctx context.Context) (*launch.Launched, error) {
	launched, err := b.start(ctx, b.startConfig())
	if err != nil {
		b.status.waiting(userapi.PhaseRecovering, "the control server to start; the backend's log says why it does not")
		return nil, fmt.Errorf("start control server: %w", err)
	}
	return launched, nil
}

func (b *boot) startConfig() wire.StartConfig {
	s := b.cfg.Settings.Agentctl
	return wire.StartConfig{
		Home: b.cfg.Home.Path(), Host: s.Host, Port: s.Port,
		Detached:        b.survival.Active(),
		UnownedPeriodMS: s.UnownedPeriod.Milliseconds(),
		IdleTimeoutMS:   s.IdleTimeout.Milliseconds(),
		EventLimit:      s.DetachedEventLimit,
	}
}

func (b *boot) start(ctx context.Context, config wire.StartConfig) (*launch.Launched, error) {
	return launch.Start(ctx, launch.Spec{
		Executable: b.cfg.Settings.Agentctl.Executable, HTTPTimeout: callTimeout, Logger: b.cfg.Logger, Config: config,
	})
}

func newSurvival(cfg Config) *survival.Capability {
	available := cfg.Availability
	if available == nil {
		available = launch.Availability
	}
	return &survival.Capability{
		InForce: cfg.Settings.AgentSurvival, Availability: available, Source: cfg.Source, Logger: cfg.Logger,
	}
}

// temporalLog writes the SDK's log through zap.
type temporalLog struct{ *zap.SugaredLogger }

var _ sdklog.Logger = temporalLog{}

func (l temporalLog) Debug(msg string, keyvals ...any) { l.Debugw(msg, keyvals...) }
func (l temporalLog) Info(msg string, keyvals ...any)  { l.Infow(msg, keyvals...) }
func (l temporalLog) Warn(msg string, keyvals ...any)  { l.Warnw(msg, keyvals...) }
func (l temporalLog) Error(msg string, keyvals ...any) { l.Errorw(msg, keyvals...) }
