// Command backend is the process that users talk to. It may be killed at any
// moment: the agents go on, and the next one adopts them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"go.temporal.io/sdk/contrib/envconfig"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/logfile"
	"github.com/kandev/recovery/internal/backend/boot"
	"github.com/kandev/recovery/internal/config"
	"github.com/kandev/recovery/internal/credential"
	"github.com/kandev/recovery/internal/home"
)

var version = "development"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "backend:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	file := flag.String("config", "", "settings `file` (default: config.yaml in the home directory, if there)")
	end := flag.Bool("end-control-server", false, "stop the recorded control server with all its agents, and exit")
	show := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *show {
		fmt.Println("backend", version)
		return nil
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	source := config.Source{File: *file, Environ: os.Environ(), Executable: executable}
	settings, err := config.Load(source)
	if err != nil {
		return err
	}
	temporal, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return fmt.Errorf("settings of Temporal (TEMPORAL_*): %w", err)
	}
	opened, err := home.Open(settings.Home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	// Its own file, and not the control server's: two processes that rotate one
	// file corrupt it (S-001.3).
	log, err := logfile.Open(filepath.Join(opened.Path(), "logs", "backend.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := boot.Config{
		Settings: settings, Home: opened, BootID: credential.NewID(), Temporal: temporal, Source: source,
	}
	cfg.Logger = log.Logger.With(zap.String("boot_id", cfg.BootID))
	if *end {
		ended, err := boot.EndControlServer(ctx, cfg)
		if err == nil && ended {
			fmt.Println("the control server and all its agents have ended")
		}
		return err
	}
	return boot.Run(ctx, cfg)
}
