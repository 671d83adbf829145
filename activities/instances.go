package activities

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/counters"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/crashpoint"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// Source is the control server that has the agents. Without one its error is
// owner.ErrNoServer.
type Source interface {
	Client() (*client.Client, owner.Server, error)
}

// Pumps moves an instance's events to Postgres for as long as it is tracked.
type Pumps interface {
	Start(session, instance string)
}

// Instances is the agents of one control server.
type Instances struct {
	Store        *store.Store
	Source       Source
	Executions   *execution.Store
	Pumps        Pumps
	Counters     *counters.Counters
	Logger       *zap.Logger
	Installation string
	BootID       string
	ReadTimeout  time.Duration
}

// EnumerateInstances lists what the adopted server holds. An instance that is
// being ended, or whose agent has ended, is marked: neither is live.
func (i *Instances) EnumerateInstances(ctx context.Context, _ calls.Pass) (calls.Enumerated, error) {
	peer, _, err := i.Source.Client()
	if err != nil {
		return calls.Enumerated{}, failure(err)
	}
	listed, err := peer.List(ctx)
	if err != nil {
		return calls.Enumerated{}, failure(err)
	}
	crashpoint.Hit("adoption.enumerated")
	out := calls.Enumerated{Instances: make([]calls.LiveInstance, 0, len(listed))}
	for _, in := range listed {
		out.Instances = append(out.Instances, calls.LiveInstance{
			ID: in.ID, SessionID: in.SessionID, Stopping: in.State == wire.InstanceStopping, Ended: !in.Alive(),
		})
	}
	return out, nil
}

// observation is what a pass read of a session. It holds environment and roots,
// and therefore never leaves memory.
type observation struct {
	record   store.InventoryRecord
	profile  store.Profile
	instance wire.InstanceDetail
	kept     *wire.TurnOutcome
	turn     *store.Turn // newest prompt that has not ended, by Postgres
}

// ObserveSession does a session's reads at once, each bounded by the read
// timeout, and keeps the values in memory. A read that was not answered fails
// the attempt; a value that its source said is absent is named in the result.
func (i *Instances) ObserveSession(ctx context.Context, in calls.SessionInput) (calls.Observation, error) {
	seen, err := i.read(ctx, in)
	var answer *wire.Error
	if errors.As(err, &answer) && (answer.Code == wire.CodeNotFound || answer.Code == wire.CodeStopped) {
		return calls.Observation{Gone: true}, nil
	}
	if err != nil {
		return calls.Observation{}, failure(err)
	}
	i.Executions.Keep(in.Pass.Number, in.SessionID, seen)
	crashpoint.Hit("adoption.observed")
	return calls.Observation{Missing: recovery.Missing(seen.present), Ended: !seen.instance.Alive()}, nil
}

func (i *Instances) read(ctx context.Context, in calls.SessionInput) (*observation, error) {
	ctx, cancel := context.WithTimeout(ctx, i.ReadTimeout)
	defer cancel()
	peer, _, err := i.Source.Client()
	if err != nil {
		return nil, err
	}
	seen := &observation{}
	reads, ctx := errgroup.WithContext(ctx)
	reads.Go(func() (err error) {
		seen.instance, err = peer.Get(ctx, in.InstanceID)
		return err
	})
	reads.Go(func() error {
		kept, err := peer.TurnOutcome(ctx, in.InstanceID)
		seen.kept = kept.Outcome
		return err
	})
	reads.Go(func() (err error) {
		if seen.record, err = i.Store.GetRecord(ctx, i.Installation, in.SessionID); err != nil {
			return err
		}
		seen.profile, err = i.Store.GetProfile(ctx, i.Installation, seen.record.ProfileID)
		if errors.Is(err, store.ErrNoProfile) {
			return nil
		}
		return err
	})
	reads.Go(func() (err error) {
		seen.turn, err = i.Store.OpenTurn(ctx, i.Installation, in.SessionID)
		return err
	})
	return seen, reads.Wait()
}

// present says, per value, whether its source has it.
func (o *observation) present(v recovery.Value) (there, empty bool) {
	text := func(s string) (bool, bool) { return true, s == "" }
	switch v {
	case recovery.ValueSession:
		return text(o.record.SessionID)
	case recovery.ValueTask:
		return text(o.record.TaskID)
	case recovery.ValueWorkspace:
		return text(o.record.Workspace)
	case recovery.ValueProfile:
		return text(o.record.ProfileID)
	case recovery.ValueTaskEnvironment:
		return text(o.record.TaskEnvironmentID)
	case recovery.ValueInstance:
		return text(o.instance.ID)
	case recovery.ValueRoots:
		return o.instance.Roots != nil, len(o.instance.Roots) == 0
	case recovery.ValueRunEnv:
		return o.instance.RunEnv != nil, len(o.instance.RunEnv) == 0
	case recovery.ValueProviderSession:
		return text(o.instance.ProviderSessionID)
	case recovery.ValueRunID:
		return text(o.instance.RunEnv[wire.EnvRunID])
	case recovery.ValueAgent:
		return text(o.profile.Agent)
	case recovery.ValueCommand:
		return len(o.profile.Command) > 0, false
	case recovery.ValueHistory:
		return text(o.profile.HistoryMode)
	default:
		return false, false
	}
}

// StopInstance ends one instance with its tree. Absent is success.
func (i *Instances) StopInstance(ctx context.Context, in calls.StopInstanceInput) (calls.StopResult, error) {
	peer, _, err := i.Source.Client()
	if err != nil {
		return calls.StopResult{}, failure(err)
	}
	absent, err := peer.Stop(ctx, in.InstanceID, in.Grace)
	if err != nil {
		i.Logger.Warn("stop failed", zap.String("instance_id", in.InstanceID), zap.Error(err))
		return calls.StopResult{}, failure(err)
	}
	i.Counters.InstanceStopped(in.SessionID, in.InstanceID, in.Reason)
	return calls.StopResult{Stopped: true, Absent: absent}, nil
}

// execution builds what the boot keeps of a tracked agent (S-002.3).
func (o *observation) execution(server string) execution.Execution {
	return execution.Execution{
		SessionID: o.record.SessionID, TaskID: o.record.TaskID, InstanceID: o.instance.ID,
		Generation: o.instance.Generation, ServerIdentity: server, PID: o.instance.PID,
		ProfileID: o.record.ProfileID, Agent: o.profile.Agent, Command: o.profile.Command,
		HistoryMode: o.profile.HistoryMode, ProviderSessionID: o.instance.ProviderSessionID,
		TaskEnvironmentID: o.record.TaskEnvironmentID, Passthrough: o.record.Passthrough, RunID: o.instance.RunEnv[wire.EnvRunID],
		RunEnv: o.instance.RunEnv, Roots: o.instance.Roots,
	}
}

var errNotObserved = errors.New("the pass keeps no observation of the session")

// PublishSession makes a surviving session usable again, in an order that a
// crash may cut anywhere:
//
//   - track it, which decides whether the pass was still in time (S-003.7);
//   - send a recorded prompt that never reached the agent, by its key (S-004.2);
//   - apply a kept terminal outcome and publish the state, in one transaction;
//   - acknowledge the outcome, which only now may be discarded (S-004.6);
//   - pump its events, and let go of its guard.
func (i *Instances) PublishSession(ctx context.Context, in calls.SessionInput) (calls.Published, error) {
	kept, ok := i.Executions.Kept(in.Pass.Number, in.SessionID)
	if !ok {
		return calls.Published{Late: true}, nil
	}
	seen, ok := kept.(*observation)
	if !ok {
		return calls.Published{}, failure(errNotObserved)
	}
	peer, server, err := i.Source.Client()
	if err != nil {
		return calls.Published{}, failure(err)
	}
	err = i.Executions.Track(in.Pass.Number, seen.execution(server.Identity))
	if errors.Is(err, execution.ErrFenced) || errors.Is(err, execution.ErrNotGuarded) {
		return calls.Published{Late: true}, nil
	}
	if err != nil {
		return calls.Published{}, failure(err)
	}
	repeated, err := i.repeatPrompt(ctx, peer, seen)
	if err != nil {
		return calls.Published{}, failure(err)
	}
	published, err := i.Store.Publish(ctx, i.retrack(seen, server.Identity))
	if err != nil {
		i.Logger.Warn("session not published yet", zap.String("session_id", in.SessionID), zap.Error(err))
		return calls.Published{}, failure(err)
	}
	crashpoint.Hit("adoption.published")
	if seen.kept != nil {
		if err := peer.AckTurnOutcome(ctx, in.InstanceID, seen.kept.TurnID); err != nil {
			return calls.Published{}, failure(err)
		}
	}
	i.Pumps.Start(in.SessionID, in.InstanceID)
	i.Executions.ReleaseGuard(in.Pass.Number, in.SessionID)
	return calls.Published{
		State: published.Session.State, AppliedOutcome: published.OutcomeApplied, PromptRepeated: repeated,
	}, nil
}

// repeatPrompt sends a recorded prompt again by its key, unless the instance
// already works on it or has ended it. The key makes that safe (B-17).
func (i *Instances) repeatPrompt(ctx context.Context, peer *client.Client, seen *observation) (bool, error) {
	turn := seen.turn
	if turn == nil || !seen.instance.Alive() || turn.State != recovery.TurnRecorded || turn.Key == seen.instance.OpenTurnKey ||
		(seen.kept != nil && seen.kept.Key == turn.Key) {
		return false, nil
	}
	blocks, err := promptBlocks(turn.Blocks)
	if err != nil {
		return false, err
	}
	sent, err := peer.Prompt(ctx, seen.instance.ID, turn.Key, wire.PromptRequest{Blocks: blocks})
	if err != nil {
		return false, err
	}
	if err := i.Store.MarkTurnSent(ctx, i.Installation, seen.record.SessionID, turn.Key, sent.TurnID); err != nil {
		return false, err
	}
	if sent.Open {
		seen.instance.OpenTurnID, seen.instance.OpenTurnKey = sent.TurnID, turn.Key
	}
	return true, nil
}

// retrack is the durable half of a publication: the state that a kept outcome
// produces, RUNNING while a turn is open, the stored state otherwise (S-004.2).
func (i *Instances) retrack(seen *observation, server string) store.Retrack {
	r := store.Retrack{
		Installation: i.Installation, SessionID: seen.record.SessionID, ExecutionID: seen.instance.ID,
		Generation: seen.instance.Generation, BootID: i.BootID, ServerIdentity: server,
		PID: seen.instance.PID, ProcessStart: seen.instance.ProcessStart,
	}
	switch {
	case seen.instance.OpenTurnID != "":
		r.State = recovery.StateRunning
	case seen.record.State == recovery.StateStarting:
		// Its start is not running any more, and its agent was ready.
		r.State = recovery.StateWaitingForInput
	}
	if k := seen.kept; k != nil {
		r.Outcome = &store.Outcome{TurnID: k.TurnID, Key: k.Key, StopReason: k.StopReason, Error: k.Error, EndedAt: k.EndedAt}
	}
	return r
}
