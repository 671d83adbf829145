// Package liveness answers, per request, whether the agent of a session that a
// recovery pass left undecided lives, and repairs its record once it is proven
// dead (S-003.6). Unknown therefore neither makes a second agent nor locks a
// session out for good.
package liveness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// Pass is what a recovery pass of this boot found out.
type Pass struct {
	Number   int64
	Server   recovery.RecordedServer
	Survival bool
}

// Checker makes single checks outside a pass. It is safe for concurrent use.
type Checker struct {
	Store        *store.Store
	Owner        *owner.Owner
	Executions   *execution.Store
	Logger       *zap.Logger
	Installation string
	BootID       string
	ReadTimeout  time.Duration // bounds the enumeration

	mu   sync.Mutex
	pass *Pass
}

// Completed tells the checker that every record has an outcome.
func (c *Checker) Completed(pass Pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass = &pass
}

func (c *Checker) completed() *Pass {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pass
}

// check judges one session with an enumeration of its own, and returns the record
// that it judged, one without a session if there is none. Before outcomes are
// complete it answers unknown at once. An error means that Postgres did not
// answer.
func (c *Checker) check(ctx context.Context, session string) (recovery.Liveness, store.InventoryRecord, error) {
	pass := c.completed()
	if pass == nil {
		return recovery.Unknown, store.InventoryRecord{}, nil
	}
	record, err := c.Store.GetRecord(ctx, c.Installation, session)
	if errors.Is(err, store.ErrNoRecord) {
		return recovery.Dead, store.InventoryRecord{}, nil
	}
	if err != nil {
		return recovery.Unknown, store.InventoryRecord{}, fmt.Errorf("read the record: %w", err)
	}
	return c.judge(ctx, *pass, record), record, nil
}

func (c *Checker) judge(ctx context.Context, pass Pass, record store.InventoryRecord) recovery.Liveness {
	facts := recovery.LivenessFacts{
		OutcomesComplete: true, StopInFlight: record.StopRequested, SurvivalOff: !pass.Survival,
		CreatedHere: record.CreatedByBoot == c.BootID, Server: pass.Server,
		Instance: recovery.PresenceUnread, Process: Process(record.PID, record.ProcessStart),
	}
	if peer, server, err := c.Owner.Client(); err == nil {
		facts.Elsewhere = record.ServerIdentity != "" && record.ServerIdentity != server.Identity
		facts.Instance = c.instance(ctx, peer, record.ExecutionID)
	}
	return recovery.Judge(facts)
}

// instance looks for the instance on the server in use.
func (c *Checker) instance(ctx context.Context, peer *client.Client, id string) recovery.Presence {
	ctx, cancel := context.WithTimeout(ctx, c.ReadTimeout)
	defer cancel()
	listed, err := peer.List(ctx)
	if err != nil {
		return recovery.PresenceUnread
	}
	if slices.ContainsFunc(listed, func(in wire.Instance) bool { return in.ID == id }) {
		return recovery.Present
	}
	return recovery.Absent
}

// Process looks for a recorded process. Only a process that is proven gone is
// absent; a pid without its start identity is believed neither way (B-12).
func Process(pid int, start string) recovery.Presence {
	if pid <= 0 || start == "" {
		return recovery.PresenceUnread
	}
	identity, err := process.Identity(pid)
	switch {
	case errors.Is(err, process.ErrNoProcess):
		return recovery.Absent
	case err != nil:
		return recovery.PresenceUnread
	case identity != start:
		return recovery.Absent
	default:
		return recovery.Present
	}
}

// Settle checks a session that a pass left guarded because nothing proved
// whether its agent lives. Once it is proven dead, the record is repaired and
// the guard released: settled is true, and the session can be started again.
// An agent that could not be stopped is not judged: its guard stays (S-002.16).
func (c *Checker) Settle(ctx context.Context, session string) (settled bool, err error) {
	alive, record, err := c.check(ctx, session)
	if err != nil || alive != recovery.Dead {
		return false, err
	}
	if record.SessionID != "" {
		_, err := c.Store.RepairIfCurrent(ctx, store.Repair{
			Installation: c.Installation, SessionID: session, ExecutionID: record.ExecutionID,
			BootID: c.BootID, Cause: string(recovery.OutcomeStale),
		})
		if err != nil {
			return false, fmt.Errorf("repair the record: %w", err)
		}
	}
	c.Executions.ReleaseGuard(c.completed().Number, session)
	c.Logger.Info("session settled", zap.String("session_id", session), zap.String("outcome", string(recovery.OutcomeStale)))
	return true, nil
}
