package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/instance"
	"github.com/kandev/recovery/agentctl/ownership"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/agentctl/workspace"
)

const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10

	// stopGrace is how long agents may take to end by themselves when the server
	// ends.
	stopGrace = 5 * time.Second
	// quiesceTimeout bounds the wait for requests admitted before the end, and
	// stopTimeout that for the agents.
	quiesceTimeout = 10 * time.Second
	stopTimeout    = time.Minute
	// drainTimeout bounds the wait for answers and streams under way at the end.
	drainTimeout = 5 * time.Second
)

// Instances is what the routes need of the instance supervisor. Its errors are
// *wire.Error.
type Instances interface {
	Create(id string, request wire.CreateRequest) (wire.Instance, error)
	List() []wire.Instance
	Get(id string) (wire.InstanceDetail, error)
	Stop(ctx context.Context, id string, grace time.Duration) (absent bool, err error)
	StopAll(ctx context.Context, grace time.Duration) error
	Prompt(id, key string, request wire.PromptRequest) (wire.Turn, error)
	Cancel(id string) error
	AnswerPermission(id, requestID string, answer wire.PermissionAnswer) error
	Startup(id string) (wire.Startup, error)
	TurnOutcome(id string) (wire.KeptOutcome, error)
	AckTurnOutcome(id, turnID string) error
	Attach(id string, after int64) (instance.Stream, error)
	Workspace(id string) (*workspace.Workspace, error)
}

// Config is what a Server serves.
type Config struct {
	Authority   *ownership.Authority
	Instances   Instances
	Identity    string // of this process, random
	Home        string
	LogPath     string
	Adjustments []string // of the settings it was started with
	Detached    bool     // outlives its backend, so that it has to end itself when nobody owns it (O-003.1)
	Logger      *zap.Logger
}

// Server serves one listener with a key that nobody else has.
type Server struct {
	cfg         Config
	answers     answers
	endpoint    string
	fingerprint string
	listener    net.Listener
	http        *http.Server
	gate        *gate
	end         context.CancelFunc // ends what is still served
}

// New prepares a server for a bound listener, which it owns from then on.
func New(cfg Config, ln net.Listener) (*Server, error) {
	cert, fingerprint, err := certificate(time.Now())
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	s := &Server{
		cfg:         cfg,
		answers:     answers{logger: cfg.Logger},
		endpoint:    ln.Addr().String(),
		fingerprint: fingerprint,
		listener:    tls.NewListener(ln, tlsConfig(cert)),
	}
	errorLog, err := zap.NewStdLogAt(cfg.Logger, zap.WarnLevel)
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	s.gate = newGate(s.answers, s.routes())
	guarded, err := newGuard(s.endpoint, s.answers, s.gate)
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	var base context.Context
	base, s.end = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           guarded,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          errorLog,
		Protocols:         http1(),
	}
	return s, nil
}

// http1 is the one protocol spoken: a WebSocket needs its connection.
func http1() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	return &p
}

// Endpoint is the host:port that the server listens on.
func (s *Server) Endpoint() string { return s.endpoint }

// Fingerprint names the certificate that clients pin.
func (s *Server) Fingerprint() string { return s.fingerprint }

// Run serves until a shutdown is decided, then stops every instance and
// returns. Nothing of the server runs afterwards. Its error is what could not
// be stopped, or why the listener failed, which is a reason to end as well.
func (s *Server) Run() error {
	watch := s.watchOwnership()
	defer watch.Wait()
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	var failure error
	select {
	case <-s.cfg.Authority.ShuttingDown():
	case err := <-served:
		failure = fmt.Errorf("serve: %w", err)
		s.cfg.Authority.ShutdownFor(ownership.ReasonListener)
	}
	if s.cfg.Authority.Reason() == ownership.ReasonUnowned {
		s.cfg.Logger.Warn("unowned shutdown", zap.Duration("since_renewal", s.cfg.Authority.SinceRenewal()))
	}
	s.cfg.Logger.Info("shutting down", zap.String("reason", string(s.cfg.Authority.Reason())),
		zap.Duration("since_renewal", s.cfg.Authority.SinceRenewal()))
	err := errors.Join(failure, s.stopInstances(), s.drain())
	if failure == nil {
		<-served
	}
	return err
}

// watchOwnership has a detached server end itself when nobody owns it. One that
// ends with its backend needs no such end, and gets none (O-003.1).
func (s *Server) watchOwnership() *sync.WaitGroup {
	var watch sync.WaitGroup
	if s.cfg.Detached {
		watch.Go(func() { s.cfg.Authority.Watch(context.Background()) })
	}
	return &watch
}

// stopInstances ends every agent, after everything that could still start one.
func (s *Server) stopInstances() error {
	quiet, cancel := context.WithTimeout(context.Background(), quiesceTimeout)
	defer cancel()
	quiesced := s.cfg.Authority.Quiesce(quiet)

	stopping, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := s.cfg.Instances.StopAll(stopping, stopGrace); err != nil {
		return errors.Join(quiesced, fmt.Errorf("stop instances: %w", err))
	}
	return quiesced
}

// drain lets answers and streams end, and cuts off those that do not.
func (s *Server) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	idle := s.gate.close()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	s.end()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-idle
	if err != nil {
		return fmt.Errorf("close listener: %w", err)
	}
	return nil
}
