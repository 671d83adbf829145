package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/backend/counters"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/backend/pump"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

// Engine starts the workflows that users ask for. Both calls return
// ErrEngineUnavailable when it is not known that they took effect.
type Engine interface {
	// StartResume starts the session's agent; ErrAlreadyResuming when that is
	// under way.
	StartResume(ctx context.Context, sessionID string) error
	// StartStop stops the instance. The same request id joins a stop in progress.
	StartStop(ctx context.Context, sessionID, instanceID, requestID string) error
}

// Errors of an Engine.
var (
	ErrAlreadyResuming   = errors.New("the session is being resumed already")
	ErrEngineUnavailable = errors.New("the workflow engine did not answer")
)

// Config is what the server needs from the start.
type Config struct {
	Address string // host:port to listen on; port 0 lets the system choose
	Token   string // of <home>/api-token
	Status  func() userapi.Status
	// Counters are answered at RouteMetrics, and count what is refused here.
	Counters *counters.Counters
	Survival Survival
	Logger   *zap.Logger
	// Heartbeat is the interval of comments on idle event streams. Zero means
	// 15 s.
	Heartbeat time.Duration
}

// Survival is the setting of the survival capability. Set acts at the next start
// (S-005.7). Errors are *userapi.Error.
type Survival interface {
	Setting() (userapi.SurvivalSetting, error)
	Set(on bool) (userapi.SurvivalSetting, error)
}

// Services are what the routes beyond the status page need. They exist once
// Postgres and Temporal answered.
type Services struct {
	Installation string
	BootID       string
	Store        *store.Store
	Executions   *execution.Store
	Owner        *owner.Owner
	Engine       Engine
	Changes      *pump.Notifier
	Liveness     Liveness
	// Passthrough is where the agents of passthrough sessions live (S-005.3).
	Passthrough Host
}

// Host is where agents live, and what starts and stops them there.
type Host struct {
	Server pump.Source
	Engine Engine
}

// host is that of sessions of the mode.
func (s *Services) host(passthrough bool) Host {
	if passthrough {
		return s.Passthrough
	}
	return Host{Server: s.Owner, Engine: s.Engine}
}

// Liveness judges a session that recovery left undecided. Settled means that its
// agent was proven dead and its record repaired, so that it can be started
// again; false that recovery goes on holding it.
type Liveness interface {
	Settle(ctx context.Context, session string) (settled bool, err error)
}

// Server is the HTTP interface of one boot.
type Server struct {
	cfg      Config
	services atomic.Pointer[Services]
	pending  permissions
	http     *http.Server
	quit     chan struct{} // closed by Shutdown: event streams end
	once     sync.Once
	served   sync.WaitGroup
	port     atomic.Int64
}

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	defaultHeartbeat  = 15 * time.Second
)

// New returns a server that does not listen yet.
func New(cfg Config) *Server {
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = defaultHeartbeat
	}
	s := &Server{cfg: cfg, quit: make(chan struct{})}
	s.http = &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          zap.NewStdLog(cfg.Logger),
	}
	return s
}

// Listen binds the address and begins to answer. It returns the address that it
// got.
func (s *Server) Listen() (string, error) {
	listener, err := net.Listen("tcp", s.cfg.Address)
	if err != nil {
		return "", fmt.Errorf("listen for the user interface: %w; free the port or set server.address", err)
	}
	s.port.Store(int64(listener.Addr().(*net.TCPAddr).Port))
	s.served.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Logger.Error("the user interface ended", zap.Error(err))
		}
	})
	return listener.Addr().String(), nil
}

// Serve opens the routes beyond the status page.
func (s *Server) Serve(services Services) { s.services.Store(&services) }

// Shutdown ends event streams, lets other requests finish until ctx ends, and
// waits for the listener to be gone.
func (s *Server) Shutdown(ctx context.Context) error {
	s.once.Do(func() { close(s.quit) })
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.served.Wait()
	return err
}
