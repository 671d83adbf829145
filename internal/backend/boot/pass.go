package boot

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/internal/backend/liveness"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/backend/pump"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
	"github.com/kandev/recovery/worker"
	"github.com/kandev/recovery/workflows"
)

// Causes of the repair of a session whose agent ended by itself, or was ended by
// its control server.
const (
	causeAgentExited = "agent_exited"
	causeAgentEnded  = "agent_ended"
)

// runPasses starts recovery passes until one has reported that it is done. The
// first one takes the place of a dead boot's (W-3). It returns nil when ctx ends.
func (b *boot) runPasses(ctx context.Context, reports <-chan calls.ReportInput) error {
	for {
		pass := b.pass.Add(1)
		if err := b.startPass(ctx, pass); err != nil {
			return err
		}
		again, err := b.awaitReport(ctx, reports, pass)
		if err != nil || !again {
			return err
		}
		b.cfg.Logger.Warn("the recovery pass lost Postgres or Temporal; starting another", zap.Int64("pass", pass))
	}
}

func (b *boot) startPass(ctx context.Context, pass int64) error {
	return b.wait(ctx, userapi.PhaseRecovering, "", func() error {
		run, err := b.engine.StartAdoption(ctx, pass, b.survival.Active())
		if err != nil {
			return err
		}
		b.status.passStarted(workflows.AdoptionID(b.cfg.Home.Installation()), run.GetRunID())
		return nil
	})
}

// awaitReport waits for the first report of the pass.
func (b *boot) awaitReport(ctx context.Context, reports <-chan calls.ReportInput, pass int64) (again bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case report := <-reports:
			if report.Pass.Number == pass {
				return report.Report.Again, nil
			}
		}
	}
}

// reports returns the hook that passes report to, and where the boot reads
// them. A report that nobody waits for, the second one of a pass, only changes
// the status page, and gives way to the next. One of an older pass says nothing
// any more.
func (b *boot) reports() (func(calls.ReportInput), <-chan calls.ReportInput) {
	reports := make(chan calls.ReportInput, 1)
	return func(report calls.ReportInput) {
		if report.Pass.Number != b.pass.Load() {
			return
		}
		b.status.passReported(report.Report)
		if r := report.Report; !r.Again {
			b.liveness.Completed(liveness.Pass{
				Number: report.Pass.Number, Survival: b.survival.Active(),
				Server: recovery.ServerFate(r.Verdict, r.Reason, r.Adopted, r.UnendedServer != ""),
			})
		}
		for {
			select {
			case reports <- report:
				return
			case <-reports:
			}
		}
	}, reports
}

// resumeRequests starts again what users had requested and a dead boot wrote
// down but may not have handed to the workflow engine. Both starts change
// nothing when the workflow is already there.
func (b *boot) resumeRequests(ctx context.Context) error {
	return b.wait(ctx, userapi.PhaseRecovering, "", func() error {
		if err := b.resumeStarts(ctx); err != nil {
			return err
		}
		return b.resumeStops(ctx)
	})
}

func (b *boot) resumeStarts(ctx context.Context) error {
	sessions, err := b.store.ListSessions(ctx, b.cfg.Home.Installation())
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if session.State != recovery.StateCreated {
			continue
		}
		err := b.engineOf(session.Passthrough).StartResume(ctx, session.ID)
		if err != nil && !errors.Is(err, worker.ErrAlreadyResuming) {
			return err
		}
	}
	return nil
}

func (b *boot) resumeStops(ctx context.Context) error {
	records, err := b.store.LiveStandalone(ctx, b.cfg.Home.Installation())
	if err != nil {
		return err
	}
	passthrough, err := b.store.LivePassthrough(ctx, b.cfg.Home.Installation())
	if err != nil {
		return err
	}
	for _, r := range append(records, passthrough...) {
		if !r.StopRequested {
			continue
		}
		if err := b.engineOf(r.Passthrough).StartStop(ctx, r.SessionID, r.ExecutionID, r.StopRequestID); err != nil {
			return err
		}
	}
	return nil
}

// newPumps returns pumps for the instances of that server.
func (b *boot) newPumps(source pump.Source) *pump.Pumps {
	return pump.New(pump.Config{
		Installation: b.cfg.Home.Installation(), BootID: b.cfg.BootID, Journal: b.store, Source: source,
		Notifier: b.changes, Logger: b.cfg.Logger, Ended: b.agentEnded(source),
		Committed: b.counters.EventCommitted, Written: b.counters.EventsWritten,
	})
}

// agentEnded returns what settles a session whose instance on that server is gone,
// once all of its events are committed: the record is repaired, and what the
// control server still keeps of an agent that ended by itself is let go of.
func (b *boot) agentEnded(source pump.Source) func(context.Context, pump.Ending) error {
	return func(ctx context.Context, e pump.Ending) error {
		if err := b.repairEnded(ctx, e); err != nil {
			return err
		}
		b.executions.DropInstance(e.SessionID, e.InstanceID)
		b.changes.Changed(e.SessionID)
		peer, _, err := source.Client()
		if errors.Is(err, owner.ErrNoServer) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := peer.Stop(ctx, e.InstanceID, 0); err != nil {
			return fmt.Errorf("let go of the ended instance: %w", err)
		}
		b.cfg.Logger.Info("agent ended", zap.String("session_id", e.SessionID), zap.String("instance_id", e.InstanceID))
		return nil
	}
}

// repairEnded repairs the record of an agent that has ended. A session whose user
// asked for the stop is left to that stop (W-7).
func (b *boot) repairEnded(ctx context.Context, e pump.Ending) error {
	inst := b.cfg.Home.Installation()
	record, err := b.store.GetRecord(ctx, inst, e.SessionID)
	if err != nil && !errors.Is(err, store.ErrNoRecord) {
		return err
	}
	if err != nil || record.ExecutionID != e.InstanceID || record.StopRequested || record.State == recovery.StateStarting {
		return nil
	}
	cause := causeAgentEnded
	if e.Exit != nil {
		cause = causeAgentExited
	}
	_, err = b.store.RepairIfCurrent(ctx, store.Repair{
		Installation: inst, SessionID: e.SessionID, ExecutionID: e.InstanceID, BootID: b.cfg.BootID, Cause: cause,
	})
	if err != nil {
		return fmt.Errorf("settle session: %w", err)
	}
	return nil
}
