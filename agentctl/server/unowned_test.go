package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kandev/recovery/agentctl/ownership"
)

// W-9: a server that ends because nobody owns it says so by an event of its own,
// once; every other end does not.
func TestUnownedShutdownIsAnEvent(t *testing.T) {
	t.Parallel()
	ends := map[string]struct {
		end    func(*running)
		events int
	}{
		"unowned": {end: func(*running) {}, events: 1},
		"signal":  {end: func(r *running) { r.authority.ShutdownFor(ownership.ReasonSignal) }},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logged := observer.New(zapcore.InfoLevel)
			unowned := time.Hour
			if c.events > 0 {
				unowned = 100 * time.Millisecond
			}
			r := startWith(t, setup{period: unowned, detached: true, logger: zap.New(core)})
			c.end(r)
			<-r.ended
			require.NoError(t, r.err)
			require.Equal(t, c.events, logged.FilterMessage("unowned shutdown").Len())
		})
	}
}
