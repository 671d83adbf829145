package instance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/events"
	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/agentctl/workspace"
	"github.com/kandev/recovery/internal/credential"
)

// Bounds of what is kept in bytes where Config gives none (B-8).
const (
	DefaultBytesPerInstance = 16 << 20
	DefaultBytesOverall     = 256 << 20
)

// Config is what a Supervisor works with.
type Config struct {
	EventLimit       int           // events kept per instance while detached; 1 to 10,000
	BytesPerInstance int64         // 0: DefaultBytesPerInstance
	BytesOverall     int64         // 0: DefaultBytesOverall
	IdleTimeout      time.Duration // 0: instances are never stopped for being idle
	Clock            func() time.Time
	Logger           *zap.Logger
	BaseEnv          []string // KEY=VALUE; agents get a short fixed list of names from it
}

// Supervisor holds all instances of one control server. Unless said otherwise
// its methods fail with *wire.Error only.
type Supervisor struct {
	config Config
	budget *events.Budget
	reaper *process.Reaper
	prefix string // of turn ids
	turns  atomic.Int64

	killWait time.Duration // after a stop's grace

	done chan struct{}
	wg   sync.WaitGroup // stops in progress and the idle watch

	mu        sync.Mutex
	instances map[string]*instance
	stopped   map[string]struct{} // tombstones
}

// NewSupervisor starts a supervisor without instances. Close ends it.
func NewSupervisor(config Config) *Supervisor {
	if config.BytesPerInstance == 0 {
		config.BytesPerInstance = DefaultBytesPerInstance
	}
	if config.BytesOverall == 0 {
		config.BytesOverall = DefaultBytesOverall
	}
	s := &Supervisor{
		config:    config,
		budget:    events.NewBudget(config.BytesOverall),
		reaper:    process.StartReaper(config.Logger),
		prefix:    "t-" + credential.NewID()[:16],
		killWait:  defaultKillWait,
		done:      make(chan struct{}),
		instances: map[string]*instance{},
		stopped:   map[string]struct{}{},
	}
	if config.IdleTimeout > 0 {
		s.wg.Go(s.watchIdle)
	}
	return s
}

// Close ends the supervisor's own work and waits for stops in progress. It
// stops no instance: StopAll does, before.
func (s *Supervisor) Close() {
	close(s.done)
	s.wg.Wait()
	s.reaper.Close()
}

// Create starts an agent and returns once it is spawned; Startup tells how it
// goes on. The same request again answers the same instance (B-17), another one
// is refused, and so is an id that was ever stopped.
func (s *Supervisor) Create(id string, request wire.CreateRequest) (wire.Instance, error) {
	i, fresh, err := s.reserve(id, request)
	if err != nil {
		return wire.Instance{}, err
	}
	if fresh {
		i.spawn()
		if i.spawnErr != nil {
			s.remove(i)
		}
		close(i.spawned)
	}
	<-i.spawned
	if i.spawnErr != nil {
		return wire.Instance{}, i.spawnErr
	}
	return i.view(), nil
}

// reserve finds the id's instance or takes the id, so that of many creates at
// once one spawns.
func (s *Supervisor) reserve(id string, request wire.CreateRequest) (i *instance, fresh bool, err error) {
	if i, err := s.reserved(id, request); i != nil || err != nil {
		return i, false, err
	}
	if err := checkRequest(id, request); err != nil {
		return nil, false, err
	}
	files, err := workspace.Open(request.Roots)
	if err != nil {
		return nil, false, asWire(err, wire.CodeInvalidWorkspace, "a workspace root is not an accessible directory")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, err := s.reservedLocked(id, request); i != nil || err != nil {
		return i, false, err
	}
	i = newInstance(s.config, s.budget, s.newTurnID, id, request)
	i.files = files
	s.instances[id] = i
	return i, true, nil
}

// reserved answers for a repeated create before the request is judged anew: a
// workspace that has gone meanwhile does not change the answer.
func (s *Supervisor) reserved(id string, request wire.CreateRequest) (*instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reservedLocked(id, request)
}

func (s *Supervisor) reservedLocked(id string, request wire.CreateRequest) (*instance, error) {
	if _, ok := s.stopped[id]; ok {
		return nil, refuse(wire.CodeStopped, "this instance was stopped")
	}
	i := s.instances[id]
	if i != nil && !sameRequest(i.request, request) {
		return nil, refuse(wire.CodeInstanceExists, "another request created this instance")
	}
	return i, nil
}

// List returns every instance that has not been stopped, in order of creation.
func (s *Supervisor) List() []wire.Instance {
	all := s.all()
	list := make([]wire.Instance, 0, len(all))
	for _, i := range all {
		list = append(list, i.view())
	}
	slices.SortFunc(list, func(a, b wire.Instance) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// Get returns one instance with its roots and run environment.
func (s *Supervisor) Get(id string) (wire.InstanceDetail, error) {
	i, err := s.find(id)
	if err != nil {
		return wire.InstanceDetail{}, err
	}
	return wire.InstanceDetail{
		Instance: i.view(),
		Roots:    slices.Clone(i.request.Roots),
		RunEnv:   runEnv(i.env),
	}, nil
}

// Startup reports how an instance's start is going.
func (s *Supervisor) Startup(id string) (wire.Startup, error) {
	i, err := s.find(id)
	if err != nil {
		return wire.Startup{}, err
	}
	return i.startupNow(), nil
}

func (s *Supervisor) find(id string) (*instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.instances[id]; i != nil {
		return i, nil
	}
	return nil, notFound()
}

func (s *Supervisor) all() []*instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.instances))
}

func (s *Supervisor) remove(i *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instances[i.id] == i {
		delete(s.instances, i.id)
	}
}

// newTurnID is never answered twice, across all instances (S-004.1).
func (s *Supervisor) newTurnID() string {
	return fmt.Sprintf("%s-%d", s.prefix, s.turns.Add(1))
}
