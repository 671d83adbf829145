package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/ownership"
	"github.com/kandev/recovery/agentctl/wire"
)

// frozenPeriod is short, and long enough for a claim to come in time on a busy
// machine.
const frozenPeriod = 4 * time.Second

// runControlServer makes this process a detached control server. It says where
// it listens, and ends with its standard input at the latest.
func runControlServer() error {
	r, err := serve(context.Background(), setup{period: frozenPeriod, detached: true, logger: zap.NewNop()})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		r.authority.ShutdownFor(ownership.ReasonParent)
	}()
	said := json.NewEncoder(os.Stdout).Encode(wire.Ready{Endpoint: r.Endpoint(), Fingerprint: r.Fingerprint()})
	<-r.ended
	r.supervisor.Close()
	return errors.Join(said, r.err)
}
