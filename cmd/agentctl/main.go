// Agentctl is the control server: it supervises the agents of one installation
// and may outlive the backend that launched it. It is started by a backend, not
// by hand: its configuration comes over standard input.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/instance"
	"github.com/kandev/recovery/agentctl/logfile"
	"github.com/kandev/recovery/agentctl/ownership"
	"github.com/kandev/recovery/agentctl/parent"
	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/agentctl/server"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

func main() {
	version := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if info, ok := debug.ReadBuildInfo(); *version && ok {
		fmt.Println(info.Main.Version)
		return
	}
	link := parent.Open(os.Stdin, parent.ReadyPipe())
	if err := run(link); err != nil {
		fmt.Fprintln(os.Stderr, "agentctl:", err)
		os.Exit(1)
	}
}

// run is the whole life of the control server.
func run(link *parent.Link) error {
	config, err := link.Config()
	if err != nil {
		return refuse(link, err)
	}
	if err := parent.Validate(config); err != nil {
		return refuse(link, err)
	}
	log, err := logfile.Open(logfile.Path(config.Home, config.LogName))
	if err != nil {
		return refuse(link, err)
	}
	defer log.Close()
	if err := process.BecomeSubreaper(); err != nil {
		return refuse(link, err)
	}
	ln, err := server.Listen(context.Background(), config.Host, config.Port)
	if err != nil {
		return refuse(link, err)
	}

	period, adjustments := ownership.ResolvePeriod(milliseconds(config.UnownedPeriodMS), milliseconds(config.IdleTimeoutMS))
	authority := ownership.New(ownership.Config{Nonce: config.Nonce, Period: period, Clock: time.Now})
	identity := credential.NewID()
	logger := log.Logger.With(zap.String("server_identity", identity))
	supervisor := instance.NewSupervisor(instance.Config{
		EventLimit:       config.EventLimit,
		BytesPerInstance: config.BytesPerInstance,
		BytesOverall:     config.BytesOverall,
		IdleTimeout:      milliseconds(config.IdleTimeoutMS),
		Clock:            time.Now,
		Logger:           logger,
		BaseEnv:          os.Environ(),
	})
	defer supervisor.Close()
	srv, err := server.New(server.Config{
		Authority:   authority,
		Instances:   supervisor,
		Identity:    identity,
		Home:        config.Home,
		LogPath:     logfile.Path(config.Home, config.LogName),
		Adjustments: adjustments,
		Detached:    config.Detached,
		Logger:      logger,
	}, ln)
	if err != nil {
		return refuse(link, err)
	}
	signals := catchSignals(config.Detached)
	go func() {
		<-signals
		authority.ShutdownFor(ownership.ReasonSignal)
	}()
	logger.Info("control server started", zap.Bool("detached", config.Detached), zap.Duration("unowned_period", period))
	if err := link.Ready(wire.Ready{
		Endpoint: srv.Endpoint(), Fingerprint: srv.Fingerprint(), ServerIdentity: identity, PID: os.Getpid(),
	}); err != nil {
		authority.ShutdownFor(ownership.ReasonUnrecorded)
	}
	go followParent(link, authority, config.Detached, logger)
	err = srv.Run()
	logger.Info("control server ended", zap.Error(err))
	return err
}

// refuse reports to the parent why this server cannot start, without anything
// of the host unless the parent said it first.
func refuse(link *parent.Link, err error) error {
	var reason *wire.Error
	if !errors.As(err, &reason) {
		reason = &wire.Error{Code: wire.CodeInternal, Message: "the control server could not start"}
	}
	return errors.Join(err, link.Ready(wire.Ready{Error: reason}))
}

// catchSignals returns where the host's requests to end arrive. A detached
// server outlives its terminal and the readers of its descriptors; those signals
// are caught, not ignored, because agents would inherit that (S-001.3).
func catchSignals(detached bool) <-chan os.Signal {
	if detached {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	return end
}

func followParent(link *parent.Link, authority *ownership.Authority, detached bool, logger *zap.Logger) {
	switch err := link.Follow(detached); {
	case errors.Is(err, parent.ErrUnrecorded):
		authority.ShutdownFor(ownership.ReasonUnrecorded)
	case errors.Is(err, parent.ErrEnded):
		authority.ShutdownFor(ownership.ReasonParent)
	case err != nil:
		logger.Error("still tied to the launching process", zap.Error(err))
	}
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
