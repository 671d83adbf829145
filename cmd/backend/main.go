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
	settings, err := config.Load(config.Source{File: *file, Environ: os.Environ(), Executable: executable})
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
	logger, err := newLogger(opened.Path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flush(logger)) }()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := boot.Config{
		Settings: settings, Home: opened, BootID: credential.NewID(), Temporal: temporal,
	}
	cfg.Logger = logger.With(zap.String("boot_id", cfg.BootID))
	if *end {
		ended, err := boot.EndControlServer(ctx, cfg)
		if err == nil && ended {
			fmt.Println("the control server and all its agents have ended")
		}
		return err
	}
	return boot.Run(ctx, cfg)
}

// newLogger writes the backend's log to its own file under the home directory;
// the control server has another one.
func newLogger(home string) (*zap.Logger, error) {
	dir := filepath.Join(home, "logs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the log directory: %w", err)
	}
	cfg := zap.NewProductionConfig()
	cfg.OutputPaths = []string{filepath.Join(dir, "backend.log")}
	cfg.ErrorOutputPaths = []string{"stderr"}
	cfg.Sampling = nil
	return cfg.Build()
}

func flush(logger *zap.Logger) error { return logger.Sync() }
