package owner

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
)

// ErrNoServer: no control server is in use: none was adopted or started yet, or
// the one in use was taken over by another backend.
var ErrNoServer = errors.New("no control server is in use")

// Rejected reports whether a server refused this boot's credential for good: a
// newer one drives, or even the memory of ours is gone (O-002.3). What failed so
// is not to be tried again without a new adoption.
func Rejected(err error) bool {
	return errors.Is(err, client.ErrSuperseded) || errors.Is(err, errUnauthenticated)
}

var errUnauthenticated = &wire.Error{Code: wire.CodeUnauthenticated}

// Server is a control server that this boot owns.
type Server struct {
	Identity      string
	Endpoint      string // host:port
	Fingerprint   string // of its TLS certificate
	Home          string
	Credential    string
	RotationID    uint64
	UnownedPeriod time.Duration // as the server itself reports it (O-003.2)
	Adopted       bool          // false: started by this boot
	PID           int
	ProcessStart  string // start identity of PID; a PID without it means nothing (B-12)
}

// Config is what an Owner needs.
type Config struct {
	Logger *zap.Logger
	Clock  func() time.Time
	// CallTimeout bounds every call of the client but an event stream; a stop
	// may take its grace in addition.
	CallTimeout time.Duration
	// BeforeUse, if not nil, is called and waited for by Use before the server
	// comes into use: whoever kept it alive until now ends here (B-2). It must
	// not call the Owner's Use or Close.
	BeforeUse func()
	// Superseded is told once when a server in use rejected this boot's
	// credential for a newer one (O-002.3). It must not call the Owner's Use or
	// Close.
	Superseded func(Server)
}

// Owner holds the control server in use. It is safe for concurrent use.
type Owner struct {
	cfg Config

	changing sync.Mutex // serializes Use and Close, which wait for a renewal to end
	closed   bool       // guarded by changing
	renewals sync.WaitGroup

	mu      sync.Mutex
	current *tenure
}

// tenure is the ownership of one server with one credential.
type tenure struct {
	server      Server
	client      *client.Client
	cancel      context.CancelFunc
	done        chan struct{}
	lastRenewal time.Time // guarded by Owner.mu
}

// New returns an owner of nothing.
func New(cfg Config) *Owner { return &Owner{cfg: cfg} }

// Use makes the server the one in use, in place of any before it without a moment
// of none between, and begins to
// renew the ownership every quarter of its period. The rotation or handshake
// that issued the credential counts as the first renewal (O-003.8). After Close
// it does nothing.
func (o *Owner) Use(server Server) {
	o.changing.Lock()
	defer o.changing.Unlock()
	if o.cfg.BeforeUse != nil {
		o.cfg.BeforeUse()
	}
	ctx, cancel := context.WithCancel(context.Background())
	next := &tenure{
		server: server,
		client: client.New(client.Config{
			Endpoint: server.Endpoint, Fingerprint: server.Fingerprint,
			Credential: server.Credential, HTTPTimeout: o.cfg.CallTimeout,
		}),
		cancel: cancel, done: make(chan struct{}), lastRenewal: o.cfg.Clock(),
	}
	if o.closed {
		cancel()
		return
	}
	o.renewals.Go(func() { o.renew(ctx, next) })
	o.end(o.swap(next))
}

// Client returns the client of the server in use, or ErrNoServer.
func (o *Owner) Client() (*client.Client, Server, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current == nil {
		return nil, Server{}, ErrNoServer
	}
	return o.current.client, o.current.server, nil
}

// LastRenewal returns the server in use and when its ownership was renewed last.
func (o *Owner) LastRenewal() (Server, time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current == nil {
		return Server{}, time.Time{}, ErrNoServer
	}
	return o.current.server, o.current.lastRenewal, nil
}

// ReportSuperseded is for callers whose operation on the server was Rejected. The first report for a server in use ends its use and
// tells Config.Superseded; reports about an earlier one do nothing.
func (o *Owner) ReportSuperseded(server Server) {
	if !o.drop(server) {
		return
	}
	o.cfg.Logger.Warn("another backend took over the control server",
		zap.String("server_identity", server.Identity), zap.Uint64("rotation_id", server.RotationID))
	o.cfg.Superseded(server)
}

// ReportGone ends the use of a server whose process is proven gone, so that
// another one can be started. It reports whether that server was in use.
func (o *Owner) ReportGone(server Server) bool {
	if !o.drop(server) {
		return false
	}
	o.cfg.Logger.Error("the control server is gone", zap.String("server_identity", server.Identity), zap.Int("pid", server.PID))
	return true
}

// drop takes the server out of use, unless another one, or the same one with
// another credential, is in use by now.
func (o *Owner) drop(server Server) bool {
	o.mu.Lock()
	lost := o.current
	if lost == nil || lost.server.Identity != server.Identity || lost.server.RotationID != server.RotationID {
		o.mu.Unlock()
		return false
	}
	o.current = nil
	o.mu.Unlock()
	lost.cancel()
	lost.client.Close()
	return true
}

// Close ends the renewal and waits for it. The server is left running, and its
// period without an owner begins.
func (o *Owner) Close() {
	o.changing.Lock()
	defer o.changing.Unlock()
	o.closed = true
	o.end(o.swap(nil))
	o.renewals.Wait()
}

func (o *Owner) swap(next *tenure) *tenure {
	o.mu.Lock()
	defer o.mu.Unlock()
	previous := o.current
	o.current = next
	return previous
}

func (o *Owner) end(t *tenure) {
	if t == nil {
		return
	}
	t.cancel()
	<-t.done
	t.client.Close()
}
