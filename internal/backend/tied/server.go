package tied

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/launch"
	"github.com/kandev/recovery/internal/backend/owner"
)

// Config is what a Server needs.
type Config struct {
	// Launch starts a bound control server.
	Launch func(ctx context.Context) (*launch.Launched, error)
	// LaunchTimeout bounds Launch, CallTimeout every call of the client but an
	// event stream.
	LaunchTimeout time.Duration
	CallTimeout   time.Duration
	Logger        *zap.Logger
	// Ended is told the identity of a server that has ended, after it is out of
	// use. It must not call Close.
	Ended func(identity string)
}

// Server is the control server of this boot's tied agents: none at first, and at
// most one at a time. It is safe for concurrent use.
type Server struct {
	cfg      Config
	life     context.Context // of starts, from New to Close
	end      context.CancelFunc
	watchers sync.WaitGroup

	mu     sync.Mutex // held while one starts, so that there are never two
	inUse  *running
	closed bool
}

type running struct {
	launched *launch.Launched
	client   *client.Client
	server   owner.Server
}

// New returns a Server of which nothing runs.
func New(cfg Config) *Server {
	life, end := context.WithCancel(context.Background())
	return &Server{cfg: cfg, life: life, end: end}
}

// Client returns the client of the server in use, or owner.ErrNoServer.
func (s *Server) Client() (*client.Client, owner.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == nil {
		return nil, owner.Server{}, owner.ErrNoServer
	}
	return s.inUse.client, s.inUse.server, nil
}

// ReportSuperseded only says so: nobody else is ever given the credential of a
// tied server, so that there is nobody to give way to.
func (s *Server) ReportSuperseded(server owner.Server) {
	s.cfg.Logger.Error("the control server of passthrough sessions rejects the credential that it issued",
		zap.String("server_identity", server.Identity))
}

// OnDemand is the Server for those who launch agents: its Client starts a control
// server where none is in use.
type OnDemand struct{ *Server }

// Client returns the client of the server in use, and starts one if there is
// none. After Close it is owner.ErrNoServer.
func (o OnDemand) Client() (*client.Client, owner.Server, error) {
	s := o.Server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, owner.Server{}, owner.ErrNoServer
	}
	if s.inUse == nil {
		if err := s.start(); err != nil {
			return nil, owner.Server{}, err
		}
	}
	return s.inUse.client, s.inUse.server, nil
}

// start is called with the lock held. The server is not told that it is recorded:
// it never is, and ends with this process all the same.
func (s *Server) start() error {
	ctx, cancel := context.WithTimeout(s.life, s.cfg.LaunchTimeout)
	defer cancel()
	launched, err := s.cfg.Launch(ctx)
	if err != nil {
		return fmt.Errorf("control server of passthrough sessions: %w", err)
	}
	next := &running{
		launched: launched,
		client: client.New(client.Config{
			Endpoint: launched.Endpoint, Fingerprint: launched.Fingerprint,
			Credential: launched.Issued.Credential, HTTPTimeout: s.cfg.CallTimeout,
		}),
		server: owner.Server{
			Identity: launched.ServerIdentity, Endpoint: launched.Endpoint, Fingerprint: launched.Fingerprint,
			Credential: launched.Issued.Credential, RotationID: launched.Issued.RotationID,
		},
	}
	s.inUse = next
	s.watchers.Go(func() { s.watch(next) })
	s.cfg.Logger.Info("control server of passthrough sessions started", zap.String("server_identity", launched.ServerIdentity))
	return nil
}

// watch takes the server out of use when it has ended. That is known for certain:
// it is a child of this process, which reaps it.
func (s *Server) watch(r *running) {
	<-r.launched.Exited()
	s.mu.Lock()
	s.inUse = nil
	s.mu.Unlock()
	r.client.Close()
	s.cfg.Ended(r.server.Identity)
}

// Close ends the server in use with all its agents, and waits until it is gone or
// was killed because ctx ended. No other one is started afterwards.
func (s *Server) Close(ctx context.Context) error {
	s.end()
	s.mu.Lock()
	s.closed = true
	last := s.inUse
	s.mu.Unlock()
	defer s.watchers.Wait()
	if last == nil {
		return nil
	}
	return last.launched.Abort(ctx)
}
