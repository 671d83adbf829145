package pump

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/store"
)

// Journal is the durable side; *store.Store is one.
type Journal interface {
	Cursor(ctx context.Context, inst, instance string) (int64, error)
	CommitEvents(ctx context.Context, b store.Batch) (committed int64, err error)
	AppendTogether(ctx context.Context, batches []store.Batch) (appended []bool, err error)
	CommitGap(ctx context.Context, g store.Gap) (committed int64, err error)
}

// Source is the control server in use; *owner.Owner is one.
type Source interface {
	Client() (*client.Client, owner.Server, error)
	ReportSuperseded(owner.Server)
}

// Ending is the end of an instance, after all of its events were committed.
type Ending struct {
	SessionID  string
	InstanceID string
	// Exit is set when its agent ended by itself while this pump watched; nil
	// when the instance was stopped, or had ended before.
	Exit *wire.AgentExited
}

// Config is what pumps need.
type Config struct {
	Installation string
	BootID       string
	Journal      Journal
	Source       Source
	Notifier     *Notifier
	Logger       *zap.Logger
	Clock        func() time.Time // nil means time.Now
	// Ended settles the session of an instance that is gone. An error makes the
	// pump ask again, until it is stopped. It may call Stop and Start for its
	// session, but not StopAll.
	Ended func(ctx context.Context, e Ending) error
	// Committed is told of every event after its commit, with the time of that
	// and when the control server had stamped it; nil: nobody.
	Committed func(at, now time.Time)
	// Written is told how long each transaction of events took; nil: nobody.
	Written func(took time.Duration)
	// RetryFrom and RetryUpTo bound the growing delay between attempts to reach
	// a peer that does not answer. Zero means 100 ms and 5 s.
	RetryFrom time.Duration
	RetryUpTo time.Duration
	// SharedFor bounds a commit that pumps share, so that a connection that is
	// stuck holds up no session but its own. Zero means 30 s.
	SharedFor time.Duration
}

// Pumps are the event pumps of one boot. They are safe for concurrent use.
type Pumps struct {
	cfg  Config
	life context.Context // of all pumps, from New to StopAll
	end  context.CancelFunc

	together *together

	mu      sync.Mutex
	running map[string]*pump // by session
	closed  bool
	all     sync.WaitGroup
}

// New returns pumps of which none runs.
func New(cfg Config) *Pumps {
	if cfg.RetryFrom == 0 {
		cfg.RetryFrom = 100 * time.Millisecond
	}
	if cfg.RetryUpTo == 0 {
		cfg.RetryUpTo = 5 * time.Second
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Committed == nil {
		cfg.Committed = func(time.Time, time.Time) {}
	}
	if cfg.Written == nil {
		cfg.Written = func(time.Duration) {}
	}
	if cfg.SharedFor == 0 {
		cfg.SharedFor = 30 * time.Second
	}
	life, end := context.WithCancel(context.Background())
	return &Pumps{
		cfg: cfg, life: life, end: end, running: make(map[string]*pump),
		together: &together{cfg: cfg, life: life},
	}
}

// Start pumps the instance's events into the session, in place of an earlier
// instance of it. It does nothing when that is what runs already, and after
// StopAll.
func (p *Pumps) Start(session, instance string) {
	p.mu.Lock()
	earlier := p.running[session]
	if p.closed || earlier != nil && earlier.instance == instance {
		p.mu.Unlock()
		return
	}
	ctx, cancel := context.WithCancel(p.life)
	next := &pump{
		cfg: p.cfg, together: p.together, session: session, instance: instance,
		log:    p.cfg.Logger.With(zap.String("session_id", session), zap.String("instance_id", instance)),
		cancel: cancel, done: make(chan struct{}),
	}
	p.running[session] = next
	p.all.Go(func() { p.run(ctx, next, earlier) })
	p.mu.Unlock()
}

// run pumps until the stream has ended for good, and then settles the session.
// The pump counts as stopped before it settles, so that settling may stop or
// start the session's pump.
func (p *Pumps) run(ctx context.Context, one, earlier *pump) {
	defer one.cancel()
	if earlier != nil {
		earlier.stop()
	}
	ending := one.pump(ctx)
	p.forget(one)
	close(one.done)
	if ending != nil {
		one.settle(ctx, *ending)
	}
}

func (p *Pumps) forget(one *pump) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[one.session] == one {
		delete(p.running, one.session)
	}
}

// Stop ends the session's pump, if there is one, and waits for it.
func (p *Pumps) Stop(session string) {
	p.mu.Lock()
	one := p.running[session]
	delete(p.running, session)
	p.mu.Unlock()
	if one != nil {
		one.stop()
	}
}

// StopAll ends every pump for good and waits for them. Agents and what they
// produced are not touched.
func (p *Pumps) StopAll() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end()
	p.all.Wait()
	p.together.landed.Wait()
}
