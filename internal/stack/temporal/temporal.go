// Package temporal runs Temporal's own development server with its web UI, for
// a single-user machine: it has no authentication and listens on loopback.
package temporal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/stack/child"
)

// Config says how to run the server.
type Config struct {
	Dir        string // for the log; created if absent
	DBFile     string // durable state; empty: in memory
	Executable string // empty: Find
	// Port and UIPort are preferred; a free one is taken when they are zero or
	// in use.
	Port, UIPort  int
	Headless      bool // without the web UI
	EndWithParent bool // see child.Spec
	Logger        *zap.Logger
}

// Server is a running server.
type Server struct {
	Address   string // host:port of the frontend
	UIAddress string // http URL; empty when headless
	process   *child.Process
}

// ErrMissing: there is no Temporal program on this machine.
var ErrMissing = errors.New("no `temporal` program found on PATH or beside this one; run `make setup`, or install Temporal's CLI")

// Find returns the program: the one on PATH, otherwise the one that lies
// beside the running program.
func Find() (string, error) {
	if path, err := exec.LookPath("temporal"); err == nil {
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	name := "temporal"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
		return path, nil
	}
	return "", ErrMissing
}

const (
	// attempts bounds how often a start is tried: between choosing a port and
	// binding it, another program can take it.
	attempts     = 3
	startTimeout = 60 * time.Second
	stopGrace    = 15 * time.Second
	loopback     = "127.0.0.1"
)

// Start runs the server and returns once its frontend answers and its default
// namespace exists.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	program := cfg.Executable
	if program == "" {
		var err error
		if program, err = Find(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create directory for Temporal: %w", err)
	}
	var err error
	for range attempts {
		var s *Server
		if s, err = startOnce(ctx, cfg, program); err == nil {
			return s, nil
		}
		if !errors.Is(err, errEarlyEnd) {
			return nil, err
		}
		cfg.Logger.Warn("temporal server ended while it started", zap.Error(err))
		cfg.Port, cfg.UIPort = 0, 0
	}
	return nil, fmt.Errorf("%w; see %s", err, logFile(cfg))
}

func logFile(cfg Config) string { return filepath.Join(cfg.Dir, "temporal.log") }

func startOnce(ctx context.Context, cfg Config, program string) (*Server, error) {
	port, uiPort, err := choosePorts(cfg.Port, cfg.UIPort)
	if err != nil {
		return nil, err
	}
	process, err := child.Start(child.Spec{
		Path: program, Args: arguments(cfg, port, uiPort), Dir: cfg.Dir, Log: logFile(cfg),
		// A user's Temporal profile must not reach a private server.
		Env:           []string{"HOME=" + cfg.Dir, "PATH=" + os.Getenv("PATH")},
		EndWithParent: cfg.EndWithParent,
	})
	if err != nil {
		return nil, err
	}
	s := &Server{Address: net.JoinHostPort(loopback, strconv.Itoa(port)), process: process}
	if !cfg.Headless {
		s.UIAddress = "http://" + net.JoinHostPort(loopback, strconv.Itoa(uiPort))
	}
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, process.Kill())
	}
	return s, nil
}

// arguments hold the settings that make the development server quick: as it
// comes, one activity takes 100 ms and one timer a second.
func arguments(cfg Config, port, uiPort int) []string {
	args := []string{
		"server", "start-dev", "--ip", loopback, "--port", strconv.Itoa(port),
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000",
		"--dynamic-config-value", "history.timerProcessorMaxPollRPS=1000",
		"--dynamic-config-value", `history.timerProcessorMaxTimeShift="10ms"`,
		"--dynamic-config-value", "matching.numTaskqueueReadPartitions=1",
		"--dynamic-config-value", "matching.numTaskqueueWritePartitions=1",
		"--dynamic-config-value", "system.enableActivityEagerExecution=true",
	}
	if cfg.DBFile != "" {
		args = append(args, "--db-filename", cfg.DBFile,
			"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL")
	}
	if cfg.Headless {
		return append(args, "--headless")
	}
	return append(args, "--ui-port", strconv.Itoa(uiPort))
}

// PID is the id of the server's process.
func (s *Server) PID() int { return s.process.PID() }

// Exited is closed when the server has ended.
func (s *Server) Exited() <-chan struct{} { return s.process.Exited() }

// Stop ends the server. Its durable state stays.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.process.Stop(ctx, stopGrace); err != nil {
		return fmt.Errorf("stop Temporal: %w", err)
	}
	return nil
}
