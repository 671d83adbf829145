package activities

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/internal/backend/counters"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/liveness"
	"github.com/kandev/recovery/internal/crashpoint"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// Resumes answers whether a session's resume is running. An error means that it
// could not be determined.
type Resumes interface {
	Running(ctx context.Context, session string) (bool, error)
}

// Inventory is the recovery inventory and the guards taken from it.
type Inventory struct {
	Store        *store.Store
	Executions   *execution.Store
	Resumes      Resumes
	Counters     *counters.Counters
	Logger       *zap.Logger
	Installation string
	BootID       string
	// Report is told how a pass stands, at least once.
	Report func(calls.ReportInput)
}

// TakeGuards reads the inventory and guards every session in it, in one step,
// before any contact with a control server (S-002.8). What it could not read is
// an error, never an empty inventory (S-002.6).
func (v *Inventory) TakeGuards(ctx context.Context, pass calls.Pass) (calls.GuardsTaken, error) {
	crashpoint.Hit("adoption.begun")
	records, err := v.Store.LiveStandalone(ctx, v.Installation)
	if err != nil {
		return calls.GuardsTaken{}, failure(err)
	}
	sessions := make([]string, 0, len(records))
	for _, r := range records {
		sessions = append(sessions, r.SessionID)
	}
	taken, err := v.Executions.TakeGuards(pass.Number, sessions)
	if err != nil {
		return calls.GuardsTaken{}, failure(err)
	}
	crashpoint.Hit("adoption.guarded")
	guarded := make(map[string]bool, len(taken.Guarded))
	for _, session := range taken.Guarded {
		guarded[session] = true
	}
	out := calls.GuardsTaken{Records: make([]calls.GuardedRecord, 0, len(records))}
	for _, r := range records {
		if !guarded[r.SessionID] {
			// Observed, not re-tracked; its instance is not an orphan (S-002.8).
			as := recovery.OutcomeRetracked
			if _, tracked := v.Executions.Get(r.SessionID); !tracked {
				as = recovery.OutcomeUnstopped
			}
			out.Records = append(out.Records, calls.GuardedRecord{SessionID: r.SessionID, ExecutionID: r.ExecutionID, OwnedBy: as})
			continue
		}
		owner, err := v.owner(ctx, r)
		if err != nil {
			return calls.GuardsTaken{}, err
		}
		out.Records = append(out.Records, calls.GuardedRecord{
			SessionID: r.SessionID, ExecutionID: r.ExecutionID, ServerIdentity: r.ServerIdentity, OwnedBy: owner,
		})
	}
	return out, nil
}

// owner tells the sessions that a recorded stop or a running resume owns
// (W-3, W-7).
func (v *Inventory) owner(ctx context.Context, r store.InventoryRecord) (recovery.SessionOutcome, error) {
	if r.StopRequested {
		return recovery.OutcomeOwnedByStop, nil
	}
	if r.State != recovery.StateStarting {
		return "", nil
	}
	running, err := v.Resumes.Running(ctx, r.SessionID)
	if err != nil {
		v.Logger.Warn("resume state unknown", zap.String("session_id", r.SessionID), zap.Error(err))
		return "", failure(err)
	}
	if running {
		return recovery.OutcomeOwnedByResume, nil
	}
	return "", nil
}

// ProbeRecords looks for the recorded process of each session. Only a process
// that is proven gone, by pid and start identity, makes a record dead. A record
// with no pid names an agent that never became ready under a server that is
// gone.
func (v *Inventory) ProbeRecords(ctx context.Context, in calls.ProbeInput) (calls.Probed, error) {
	var out calls.Probed
	for _, session := range in.Sessions {
		record, err := v.Store.GetRecord(ctx, v.Installation, session)
		if errors.Is(err, store.ErrNoRecord) {
			continue
		}
		if err != nil {
			return calls.Probed{}, failure(err)
		}
		if record.PID <= 0 || liveness.Process(record.PID, record.ProcessStart) == recovery.Absent {
			out.Dead = append(out.Dead, session)
		}
	}
	return out, nil
}

// storeProbe bounds how long closing a pass asks whether Postgres answers.
const storeProbe = 2 * time.Second

// ClosePass ends the pass in one step: what was not tracked by now is not
// published any more (S-003.7). It returns the sessions that are tracked.
func (v *Inventory) ClosePass(ctx context.Context, pass calls.Pass) (calls.Closed, error) {
	v.Executions.ClosePass(pass.Number)
	var out calls.Closed
	for _, e := range v.Executions.List() {
		out.Published = append(out.Published, e.SessionID)
	}
	ping, cancel := context.WithTimeout(ctx, storeProbe)
	defer cancel()
	out.StoreLost = v.Store.Ping(ping) != nil
	crashpoint.Hit("adoption.closed")
	return out, nil
}

// ReconcileRecords writes the outcomes, repairs the records of agents that are
// proven gone, and decides what a launch of each session meets from now on. It
// reads outcomes and nothing else (S-003.1), and may be repeated.
func (v *Inventory) ReconcileRecords(ctx context.Context, in calls.ReconcileInput) (calls.Reconciled, error) {
	rows := make([]store.RecoveryOutcome, 0, len(in.Outcomes))
	for _, o := range in.Outcomes {
		rows = append(rows, store.RecoveryOutcome{SessionID: o.SessionID, Outcome: o.Outcome, Instance: o.Instance, Detail: o.Detail})
	}
	if err := v.Store.PutRecoveryOutcomes(ctx, v.Installation, v.BootID, in.Pass.Number, rows); err != nil {
		return calls.Reconciled{}, failure(err)
	}
	var result calls.Reconciled
	for _, o := range in.Outcomes {
		v.Counters.SessionSettled(in.Pass.Number, o.SessionID, o.Outcome, o.Instance, o.Detail)
		repaired, err := v.reconcile(ctx, in.Pass, o)
		if err != nil {
			return calls.Reconciled{}, failure(err)
		}
		if repaired {
			result.Repaired++
		} else {
			result.Left++
		}
	}
	crashpoint.Hit("adoption.reconciled")
	return result, nil
}

// ReportPass tells this boot how the pass stands. From the first report on,
// users are served.
func (v *Inventory) ReportPass(_ context.Context, in calls.ReportInput) error {
	v.Logger.Info("recovery pass", zap.String("outcome", string(in.Report.Verdict)), zap.String("reason", string(in.Report.Reason)),
		zap.Any("counts", in.Report.Counts), zap.Int("stopped", in.Report.Stopped), zap.Int("unstopped", in.Report.Unstopped),
		zap.String("unended_server", in.Report.UnendedServer))
	v.Counters.PassJudged(in.Pass.Number, in.Report.Verdict, in.Report.Reason, in.Report.RotationID != 0)
	v.Report(in)
	return nil
}

func (v *Inventory) reconcile(ctx context.Context, pass calls.Pass, o calls.SessionOutcome) (repaired bool, err error) {
	if recovery.RepairFor(o.Outcome, o.StopInFlight) == recovery.RepairRecord {
		if err := v.repair(ctx, o); err != nil {
			return false, err
		}
		repaired = true
	}
	refusal, refused := recovery.LaunchAfter(o.Outcome)
	if refusal != recovery.LaunchRefusedTracked {
		v.Executions.Drop(o.SessionID)
	}
	switch {
	case refusal == recovery.LaunchRefusedUnstopped:
		v.Executions.KeepGuard(o.SessionID, o.Instance)
	case refused, o.StopInFlight:
		// Unknown sessions stay guarded, and a publication that has not
		// finished lets go of its guard itself.
	default:
		v.Executions.ReleaseGuard(pass.Number, o.SessionID)
	}
	v.Logger.Info("session settled", zap.String("session_id", o.SessionID), zap.String("outcome", string(o.Outcome)),
		zap.String("instance_id", o.Instance), zap.String("reason", o.Detail))
	return repaired, nil
}

func (v *Inventory) repair(ctx context.Context, o calls.SessionOutcome) error {
	record, err := v.Store.GetRecord(ctx, v.Installation, o.SessionID)
	if errors.Is(err, store.ErrNoRecord) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = v.Store.RepairIfCurrent(ctx, store.Repair{
		Installation: v.Installation, SessionID: o.SessionID, ExecutionID: record.ExecutionID,
		BootID: v.BootID, Cause: string(o.Outcome),
	})
	return err
}
