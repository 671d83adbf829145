package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/counters"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/liveness"
	"github.com/kandev/recovery/internal/crashpoint"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// Sessions gives sessions their agents and takes them away. Its activities run
// on the user queue, may be continued by another boot, and rely on nothing but
// Postgres and the control server.
type Sessions struct {
	Store        *store.Store
	Source       Source
	Executions   *execution.Store
	Pumps        Pumps
	Liveness     *liveness.Checker
	Counters     *counters.Counters
	Logger       *zap.Logger
	Installation string
	BootID       string
	ReadTimeout  time.Duration
}

// startupPoll is how often a start is looked at. It is loopback HTTP.
const startupPoll = 100 * time.Millisecond

// BeginStart moves the session to STARTING and writes down the launch, in one
// transaction and before anything is spawned. The execution id comes from the
// workflow, so that a repeated attempt finds its own intent.
func (s *Sessions) BeginStart(ctx context.Context, in calls.StartIntent) (calls.StartIntent, error) {
	session, err := s.Store.GetSession(ctx, s.Installation, in.SessionID)
	if err != nil {
		return in, failure(err)
	}
	if err := s.admit(ctx, session); err != nil {
		return in, err
	}
	begun, err := s.Store.BeginStart(ctx, store.Start{
		Installation: s.Installation, SessionID: in.SessionID, ExecutionID: in.ExecutionID, BootID: s.BootID,
	})
	if err != nil {
		return in, failure(err)
	}
	crashpoint.Hit("launch.begun")
	in.Generation, in.Prior = begun.Generation, begun.Prior
	return in, nil
}

// admit asks whether the session may get an agent now. One that recovery left
// undecided is judged anew with every attempt (S-003.6).
func (s *Sessions) admit(ctx context.Context, session store.Session) error {
	refusal := s.Executions.AdmitLaunch(session.ID, session.Passthrough)
	if refusal == nil {
		return nil
	}
	if !refusal.Retryable() {
		s.Counters.LaunchRefused(session.ID, refusal.LaunchRefusal)
		return temporal.NewNonRetryableApplicationError(refusal.Error(), calls.FailureLaunchRefused, nil)
	}
	settled, err := s.Liveness.Settle(ctx, session.ID)
	if err != nil {
		return failure(err)
	}
	if settled {
		return nil
	}
	s.Counters.LaunchRefused(session.ID, refusal.LaunchRefusal)
	return temporal.NewApplicationError("recovery holds the session", calls.FailureLaunchRefusedRetryable, nil)
}

// CreateInstance has the control server in use spawn the agent. The inventory
// names that server first, and a launch that was bound to another one is not
// repeated here: its agent may live there (B-26, W-3).
func (s *Sessions) CreateInstance(ctx context.Context, in calls.StartIntent) error {
	session, err := s.Store.GetSession(ctx, s.Installation, in.SessionID)
	if err != nil {
		return failure(err)
	}
	profile, err := s.Store.GetProfile(ctx, s.Installation, session.ProfileID)
	if errors.Is(err, store.ErrNoProfile) {
		return temporal.NewNonRetryableApplicationError("the session's profile does not exist any more", calls.FailureAgentStart, nil)
	}
	if err != nil {
		return failure(err)
	}
	peer, server, err := s.Source.Client()
	if err != nil {
		return failure(err)
	}
	err = s.Store.BindExecution(ctx, store.Binding{
		Installation: s.Installation, SessionID: in.SessionID, ExecutionID: in.ExecutionID, ServerIdentity: server.Identity,
	})
	if err != nil {
		return failure(err)
	}
	_, err = peer.Create(ctx, in.ExecutionID, wire.CreateRequest{
		SessionID: in.SessionID, TaskID: session.TaskID, Generation: in.Generation,
		Command: profile.Command, Env: profile.Env, Roots: session.Roots,
		Mode: wire.ModeNew, RunID: in.ExecutionID,
	})
	if err != nil {
		s.Logger.Warn("instance not created", zap.String("session_id", in.SessionID), zap.String("instance_id", in.ExecutionID), zap.Error(err))
		return failure(err)
	}
	crashpoint.Hit("launch.created")
	return nil
}

// AwaitReady waits until the agent's conversation is open. Its context ends it.
func (s *Sessions) AwaitReady(ctx context.Context, in calls.StartIntent) error {
	peer, _, err := s.Source.Client()
	if err != nil {
		return failure(err)
	}
	ticker := time.NewTicker(startupPoll)
	defer ticker.Stop()
	for {
		startup, err := peer.Startup(ctx, in.ExecutionID)
		switch {
		case errors.Is(err, errNotFound):
			return agentGone()
		case err != nil:
			return failure(err)
		case startup.Phase == wire.PhaseReady:
			return nil
		case startup.Phase == wire.PhaseFailed:
			return temporal.NewNonRetryableApplicationError(startCause(startup), calls.FailureAgentStart, nil)
		}
		select {
		case <-ctx.Done():
			return failure(ctx.Err())
		case <-ticker.C:
		}
	}
}

var errNotFound = &wire.Error{Code: wire.CodeNotFound}

// agentGone is the end of a start whose agent is not on the server in use: it
// went with the server of an earlier boot.
func agentGone() error {
	return temporal.NewNonRetryableApplicationError("the agent is gone", calls.FailureAgentStart, nil)
}

// startCause says in one line where and why a start failed.
func startCause(s wire.Startup) string {
	cause := "the agent failed while " + string(s.FailedIn)
	if s.ExitCode != nil {
		cause += fmt.Sprintf(" (exit status %d)", *s.ExitCode)
	}
	if s.Cause != "" {
		cause += ": " + s.Cause
	}
	return cause
}

// PublishStarted records the agent that is ready, moves the session to
// WAITING_FOR_INPUT, and tracks it.
func (s *Sessions) PublishStarted(ctx context.Context, in calls.StartIntent) error {
	peer, server, err := s.Source.Client()
	if err != nil {
		return failure(err)
	}
	detail, err := peer.Get(ctx, in.ExecutionID)
	if errors.Is(err, errNotFound) {
		return agentGone()
	}
	if err != nil {
		return failure(err)
	}
	session, err := s.Store.PublishStarted(ctx, store.Started{
		Installation: s.Installation, SessionID: in.SessionID, ExecutionID: in.ExecutionID, BootID: s.BootID,
		ServerIdentity: server.Identity, PID: detail.PID, ProcessStart: detail.ProcessStart,
		ProviderSessionID: detail.ProviderSessionID,
	})
	if err != nil {
		return failure(err)
	}
	crashpoint.Hit("launch.published")
	profile, err := s.Store.GetProfile(ctx, s.Installation, session.ProfileID)
	if err != nil && !errors.Is(err, store.ErrNoProfile) {
		return failure(err)
	}
	seen := &observation{instance: detail, profile: profile, record: store.InventoryRecord{
		SessionID: session.ID, TaskID: session.TaskID, TaskEnvironmentID: session.TaskEnvironmentID, ProfileID: session.ProfileID,
		Passthrough: session.Passthrough,
	}}
	if err := s.Executions.TrackLaunched(seen.execution(server.Identity)); err != nil {
		return failure(err)
	}
	s.Pumps.Start(in.SessionID, in.ExecutionID)
	return nil
}

// abandonGrace is how long the agent of an abandoned start may end by itself.
const abandonGrace = time.Second

// AbandonStart ends what a start left behind and restores the session's prior
// recoverable state, unless another transition won. The agent goes first:
// a session that looks startable never has one. An agent that was published is
// no leftover, although its launch ran into its deadline while no backend was
// there to say so: its publication is finished instead.
func (s *Sessions) AbandonStart(ctx context.Context, in calls.AbandonInput) (calls.ResumeResult, error) {
	published, err := s.published(ctx, in.Intent)
	if err != nil {
		return calls.ResumeResult{}, failure(err)
	}
	if published {
		err := s.PublishStarted(ctx, in.Intent)
		var final *temporal.ApplicationError
		if err == nil || !errors.As(err, &final) || !final.NonRetryable() {
			return calls.ResumeResult{State: recovery.StateWaitingForInput, ExecutionID: in.Intent.ExecutionID}, err
		}
	}
	peer, _, err := s.Source.Client()
	if err != nil {
		return calls.ResumeResult{}, failure(err)
	}
	if _, err := peer.Stop(ctx, in.Intent.ExecutionID, abandonGrace); err != nil && !errors.Is(err, client.ErrSuperseded) {
		return calls.ResumeResult{}, failure(err)
	}
	s.Executions.DropInstance(in.Intent.SessionID, in.Intent.ExecutionID)
	session, err := s.Store.AbandonStart(ctx, store.Abandon{
		Installation: s.Installation, SessionID: in.Intent.SessionID, ExecutionID: in.Intent.ExecutionID,
		BootID: s.BootID, Cause: in.Cause,
	})
	if err != nil && !isConflict(err) {
		return calls.ResumeResult{}, failure(err)
	}
	return calls.ResumeResult{State: session.State, ExecutionID: in.Intent.ExecutionID, Cause: in.Cause}, nil
}

// published reports whether the start's agent is the session's current one, and
// nobody asked for its end.
func (s *Sessions) published(ctx context.Context, in calls.StartIntent) (bool, error) {
	record, err := s.Store.GetRecord(ctx, s.Installation, in.SessionID)
	if errors.Is(err, store.ErrNoRecord) {
		return false, nil
	}
	return err == nil && record.ExecutionID == in.ExecutionID && record.StartedAt != nil && !record.StopRequested, err
}

// FinishStop settles a user's stop in the inventory and forgets the execution.
// A stop that failed leaves the session as it is and says so; if this boot does
// not track the agent, launches are kept away from what may live on (S-002.16).
func (s *Sessions) FinishStop(ctx context.Context, in calls.FinishStopInput) error {
	cause := string(recovery.StopUser)
	if !in.Stopped {
		cause = "stop failed: " + in.Detail
	}
	_, err := s.Store.FinishStop(ctx, store.StopEnd{
		Installation: s.Installation, SessionID: in.SessionID, ExecutionID: in.InstanceID,
		Stopped: in.Stopped, BootID: s.BootID, Cause: cause,
	})
	if err != nil && !isConflict(err) {
		return failure(err)
	}
	if in.Stopped {
		s.Executions.DropInstance(in.SessionID, in.InstanceID)
		return nil
	}
	if _, tracked := s.Executions.Get(in.SessionID); !tracked {
		s.Executions.KeepGuard(in.SessionID, in.InstanceID)
	}
	return nil
}
