package instance

import (
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// idleGrace is what an idle agent gets to end by itself.
const idleGrace = 5 * time.Second

// Bounds of the interval at which idleness is looked at.
const (
	minIdleLook = 10 * time.Millisecond
	maxIdleLook = 30 * time.Second
)

// watchIdle stops instances that had no turn and no activity for the idle
// timeout.
func (s *Supervisor) watchIdle() {
	ticker := time.NewTicker(min(max(s.config.IdleTimeout/10, minIdleLook), maxIdleLook))
	defer ticker.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
			s.stopIdle()
		}
	}
}

func (s *Supervisor) stopIdle() {
	now := s.config.Clock()
	idle := func(i *instance) bool {
		turnID, _ := i.turns.current()
		return i.state == wire.InstanceReady && turnID == "" && now.Sub(i.active) >= s.config.IdleTimeout
	}
	for _, i := range s.all() {
		if s.beginStop(i, idleGrace, idle) != nil {
			i.logger.Info("idle instance is stopped", zap.Duration("idle_timeout", s.config.IdleTimeout))
		}
	}
}
