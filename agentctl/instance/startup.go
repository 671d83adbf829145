package instance

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/acp"
	"github.com/kandev/recovery/agentctl/wire"
)

// errCannotContinue: the agent advertises no way to go on with a conversation,
// and a new one is never opened in its place.
var errCannotContinue = errors.New("the agent can neither load nor resume a conversation")

// open initializes the agent and opens its conversation with exactly one call
// (B-18).
func (i *instance) open(ctx context.Context) error {
	i.reach(wire.PhaseInitializing)
	can, err := i.agent.Initialize(ctx)
	if err != nil {
		return err
	}
	i.mu.Lock()
	i.startup.LoadSession = can.LoadSession
	i.mu.Unlock()
	i.reach(wire.PhaseOpening)
	id, err := i.openConversation(ctx, can)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.providerSessionID = id
	i.startup.Phase = wire.PhaseReady
	i.active = i.clock()
	if i.state == wire.InstanceStarting {
		i.state = wire.InstanceReady
	}
	return nil
}

// openConversation continues by the method that was asked for, or by the other
// one if the agent advertises only that.
func (i *instance) openConversation(ctx context.Context, can acp.Capabilities) (string, error) {
	cwd, id := i.request.Roots[0], i.request.ProviderSessionID
	switch mode := i.request.Mode; {
	case mode == wire.ModeNew:
		return i.agent.NewSession(ctx, cwd)
	case mode == wire.ModeLoad && can.LoadSession, can.LoadSession && !can.ResumeSession:
		return id, i.agent.LoadSession(ctx, cwd, id)
	case can.ResumeSession:
		return id, i.agent.ResumeSession(ctx, cwd, id)
	default:
		return "", errCannotContinue
	}
}

func (i *instance) reach(phase wire.StartupPhase) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.startup.Phase = phase
}

func (i *instance) startupNow() wire.Startup {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.startup
}

// giveUp records why the start failed. The exit code is told only if the agent
// ended by itself.
func (i *instance) giveUp(err error) {
	cause := causeOf(err)
	var code *int
	if i.endsByItself() {
		exit, _ := i.process.ExitStatus()
		code = &exit
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.startup.FailedIn = i.startup.Phase
	i.startup.Phase = wire.PhaseFailed
	i.startup.Cause = cause
	i.startup.ExitCode = code
	i.logger.Warn("agent's start failed", zap.String("reason", cause),
		zap.String("phase", string(i.startup.FailedIn)))
}

// endsByItself gives an agent whose output has ended the moment that its exit
// needs.
func (i *instance) endsByItself() bool {
	timer := time.NewTimer(exitMoment)
	defer timer.Stop()
	select {
	case <-i.process.Exited():
		return true
	case <-timer.C:
	case <-i.life.Done():
	}
	return false
}
