package instance

import (
	"context"
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

const (
	// exitMoment separates "the agent ended" from "its output ended".
	exitMoment = 500 * time.Millisecond
	// leftoverGrace is given to what an ended agent left behind, and to an agent
	// whose start failed.
	leftoverGrace = time.Second
	// defaultKillWait bounds how long processes may take to vanish after SIGKILL.
	defaultKillWait = 5 * time.Second
)

// follow lives as long as the agent, or until a stop begins.
func (i *instance) follow() {
	final := wire.InstanceExited
	if err := i.open(i.life); err != nil {
		if i.life.Err() != nil {
			return
		}
		final = wire.InstanceFailed
		i.giveUp(err)
	} else {
		select {
		case <-i.process.Exited():
		case <-i.agent.Done():
			// Without its output an agent is of no use, whether it ends or not.
			if !i.endsByItself() && i.life.Err() == nil {
				i.logger.Warn("agent closed its output and runs on")
			}
		case <-i.life.Done():
		}
	}
	if i.life.Err() == nil {
		i.finish(final)
	}
}

// finish clears an agent's tree, records its end after everything that its
// output held, and settles the final state. The end is noticed by the process,
// not by its output, which a descendant may hold.
func (i *instance) finish(final wire.InstanceState) {
	ctx, cancel := context.WithTimeout(i.life, leftoverGrace+defaultKillWait)
	err := i.process.Stop(ctx, leftoverGrace)
	cancel()
	if i.life.Err() != nil {
		return
	}
	if err != nil {
		i.logger.Error("agent's processes not ended", zap.Error(err))
		i.become(wire.InstanceStopping, wire.InstanceStarting, wire.InstanceReady)
		return
	}
	select {
	case <-i.agent.Done():
	case <-i.life.Done():
		return
	}
	i.agent.Close()
	i.recordExit()
	i.become(final, wire.InstanceStarting, wire.InstanceReady)
}

// recordExit waits like every other event while the log is full.
func (i *instance) recordExit() {
	code, signal := i.process.ExitStatus()
	payload, err := json.Marshal(wire.AgentExited{ExitCode: code, Signal: signal})
	if err == nil {
		_, err = i.log.Append(i.life, wire.EventAgentExited, "", payload)
	}
	if err != nil {
		i.logger.Warn("agent's end not recorded", zap.Error(err))
	}
	i.log.Finish()
	i.logger.Info("agent ended", zap.Int("exit_code", code), zap.String("signal", signal))
}
