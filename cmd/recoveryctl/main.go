// Command recoveryctl is the operator's command line: it runs a whole stack on
// one machine, shows its state, drives sessions, and demonstrates that agents
// survive the loss of their backend.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kandev/recovery/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second Ctrl-C ends this program at once.
	context.AfterFunc(ctx, stop)
	code := cli.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
