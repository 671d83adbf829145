// Package keepalive keeps a control server that outlived its backend from ending
// itself while the next backend cannot recover yet, because Postgres or Temporal
// is away (B-2). It proves the server, claims it, and does nothing else.
package keepalive

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/sealedcopy"
)

// ErrNotRecorded is what a Source answers when it knows that there is no control
// server: nobody is kept alive then.
var ErrNotRecorded = errors.New("no control server is recorded")

// Source says which server to keep alive, and with which credential.
type Source func(ctx context.Context) (sealedcopy.Server, error)

// Config is what a Keeper needs.
type Config struct {
	Home   string // as the proof covers it
	Copy   *sealedcopy.File
	Logger *zap.Logger
	Clock  func() time.Time
	// CallTimeout bounds each call; half a renewal interval does so as well.
	CallTimeout time.Duration
}

// State says that a server is being kept alive.
type State struct {
	ServerIdentity string
	Since          time.Time // of the first renewal
	LastRenewal    time.Time
	Means          Means // of the last renewal
}

// Means is how a server was kept alive.
type Means string

// The two means of B-2.
const (
	ByClaim  Means = "claim"
	ByReplay Means = "rotation_replay" // the credential held is superseded and not confirmed
)

// Keeper renews one server's ownership at a quarter of its unowned period, from
// Start to Stop. It is safe for concurrent use.
type Keeper struct {
	cfg    Config
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	prefer Source // nil while Postgres is away
	state  State  // zero while nobody is kept alive

	refused sealedcopy.Server // refused for good; used by the one goroutine only
}

// Start begins at once, with the sealed copy.
func Start(cfg Config) *Keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &Keeper{cfg: cfg, cancel: cancel, done: make(chan struct{})}
	go k.run(ctx)
	return k
}

// Prefer has the source asked first from now on: what Postgres answers wins, and
// the sealed copy counts where it gives no answer.
func (k *Keeper) Prefer(source Source) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prefer = source
}

// Stop ends keeping alive and waits for it. It may be repeated. A call under way
// is abandoned: whatever the server still makes of it, an adoption loses nothing
// by it. A claim with a superseded credential is rejected, and so is a replay
// once the rotation is confirmed; before that a replay issues the same rotation
// again, at a moment at which its adopter has nothing under way but the
// confirmation.
func (k *Keeper) Stop() {
	k.cancel()
	<-k.done
	k.set(State{})
}

// State returns the server that is being kept alive; ok is false if none is.
func (k *Keeper) State() (state State, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state, k.state.ServerIdentity != ""
}

func (k *Keeper) set(s State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = s
}
