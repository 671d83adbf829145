package tied

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/backend/liveness"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/backend/pump"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// Causes of the repair of a passthrough session: its agent ended with the backend
// that had started it, or with its control server while the backend went on.
const (
	CauseBackendEnded = "backend_ended"
	CauseServerEnded  = "control_server_ended"
)

// Resumes answers whether a session's resume is running. An error means that it
// could not be determined.
type Resumes interface {
	Running(ctx context.Context, session string) (bool, error)
}

// Settler gives passthrough sessions the state that is true once their agents
// went with an earlier backend, or with a tied server: they are interrupted, and
// keep resume token and worktree. Only an agent that is proven gone is settled;
// one that may still be ending is looked at again.
type Settler struct {
	Store        *store.Store
	Server       *Server
	Resumes      Resumes
	Notifier     *pump.Notifier
	Logger       *zap.Logger
	Installation string
	BootID       string
	// RetryFrom and RetryUpTo bound the growing delay between two looks.
	RetryFrom time.Duration
	RetryUpTo time.Duration
}

// Run settles at once, and again after every wake, until ctx ends.
func (s *Settler) Run(ctx context.Context, wake <-chan struct{}) {
	for {
		if err := s.settle(ctx); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
	}
}

var errUnsettled = errors.New("agents of passthrough sessions may still be ending")

// settle looks, again and again, until every session that has lost its agent is
// settled or ctx ends.
func (s *Settler) settle(ctx context.Context) error {
	delay := backoff.NewExponentialBackOff()
	delay.InitialInterval, delay.MaxInterval = s.RetryFrom, s.RetryUpTo
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		return struct{}{}, s.round(ctx)
	}, backoff.WithBackOff(delay), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, next time.Duration) {
		s.Logger.Info("passthrough sessions not settled yet", zap.Error(err), zap.Duration("retry_in", next))
	}))
	return err
}

func (s *Settler) round(ctx context.Context) error {
	records, err := s.Store.LivePassthrough(ctx, s.Installation)
	if err != nil {
		return err
	}
	var unsettled error
	for _, record := range records {
		lost, err := s.lost(ctx, record)
		if err == nil && lost {
			err = s.repair(ctx, record)
		}
		unsettled = errors.Join(unsettled, err)
	}
	return unsettled
}

// lost reports whether the record's agent is proven gone. The error is that this
// cannot be said yet. What a running start or a user's stop has is left to it
// (W-3, W-7), and the agents of the server in use are in the care of their pumps.
func (s *Settler) lost(ctx context.Context, record store.InventoryRecord) (bool, error) {
	_, server, err := s.Server.Client()
	switch {
	case err != nil && !errors.Is(err, owner.ErrNoServer):
		return false, err
	case err == nil && record.ServerIdentity == server.Identity, record.StopRequested:
		return false, nil
	case record.State == recovery.StateStarting:
		return s.lostStart(ctx, record)
	case liveness.Process(record.PID, record.ProcessStart) == recovery.Absent:
		return true, nil
	default:
		return false, errUnsettled
	}
}

// lostStart is for a start. Nobody goes on with it if none is running and the
// record, read after that, is as it was.
func (s *Settler) lostStart(ctx context.Context, record store.InventoryRecord) (bool, error) {
	running, err := s.Resumes.Running(ctx, record.SessionID)
	if err != nil || running {
		return false, err
	}
	now, err := s.Store.GetRecord(ctx, s.Installation, record.SessionID)
	if err != nil {
		return false, err
	}
	if now.State != recovery.StateStarting || now.ExecutionID != record.ExecutionID {
		return false, errUnsettled
	}
	return true, nil
}

func (s *Settler) repair(ctx context.Context, record store.InventoryRecord) error {
	cause := CauseBackendEnded
	if cmp.Or(record.TrackedByBoot, record.CreatedByBoot) == s.BootID {
		cause = CauseServerEnded
	}
	repaired, err := s.Store.RepairIfCurrent(ctx, store.Repair{
		Installation: s.Installation, SessionID: record.SessionID, ExecutionID: record.ExecutionID,
		BootID: s.BootID, Cause: cause,
	})
	if err != nil {
		return fmt.Errorf("repair the record: %w", err)
	}
	if !repaired {
		return nil
	}
	s.Notifier.Changed(record.SessionID)
	s.Logger.Info("passthrough session settled", zap.String("session_id", record.SessionID), zap.String("cause", cause))
	return nil
}
