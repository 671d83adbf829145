package instance

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/acp"
	"github.com/kandev/recovery/agentctl/events"
	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/agentctl/workspace"
	"github.com/kandev/recovery/internal/credential"
)

// instance is one supervised agent.
type instance struct {
	id      string
	request wire.CreateRequest
	env     map[string]string
	created time.Time
	clock   func() time.Time
	logger  *zap.Logger
	log     *events.Log
	turns   *turnBook
	files   *workspace.Workspace

	// Written before spawned is closed.
	spawned  chan struct{}
	spawnErr error
	process  *process.Process
	agent    *acp.Agent
	stderr   tail

	life context.Context // until a stop begins
	end  context.CancelFunc
	wg   sync.WaitGroup // what follows the agent

	mu                sync.Mutex
	state             wire.InstanceState
	startup           wire.Startup
	providerSessionID string
	active            time.Time // last activity
	stop              *stopAttempt
}

func newInstance(c Config, budget *events.Budget, newTurnID func() string, id string, r wire.CreateRequest) *instance {
	life, end := context.WithCancel(context.Background())
	now := c.Clock()
	return &instance{
		id: id, request: r, env: agentEnv(c.BaseEnv, r), created: now, clock: c.Clock,
		logger: c.Logger.With(
			zap.String("instance_id", id), zap.String("session_id", r.SessionID),
			zap.Int64("generation", r.Generation)),
		log:     events.NewLog(events.Limits{Count: c.EventLimit, Bytes: c.BytesPerInstance}, budget, c.Clock),
		turns:   newTurnBook(newTurnID),
		spawned: make(chan struct{}),
		life:    life, end: end,
		state:             wire.InstanceStarting,
		startup:           wire.Startup{Generation: r.Generation, Phase: wire.PhaseSpawned},
		providerSessionID: r.ProviderSessionID,
		active:            now,
	}
}

// spawn starts the agent's process and everything that follows it, or leaves
// spawnErr.
func (i *instance) spawn() {
	p, err := process.Start(process.Spec{
		Argv: i.request.Command, Env: entries(i.env), Dir: i.request.Roots[0],
		Marker: credential.NewID(),
	})
	if err != nil {
		i.logger.Warn("agent not started", zap.Error(err))
		i.spawnErr = spawnRefusal(err)
		i.end()
		return
	}
	agent := acp.Open(acp.Config{
		Stdin: p.Stdin(), Stdout: p.Stdout(), Recorder: recorder{i},
		Hooks:  acp.Hooks{TurnEnded: i.turnEnded},
		Logger: i.logger, Clock: i.clock,
	})
	i.mu.Lock()
	i.process, i.agent = p, agent
	i.mu.Unlock()
	i.wg.Go(i.drainStderr)
	i.wg.Go(i.follow)
	i.logger.Info("agent started", zap.Int("pid", p.PID()))
}

// drainStderr keeps an agent from blocking on what nobody reads (B-10).
func (i *instance) drainStderr() {
	if _, err := io.Copy(&i.stderr, i.process.Stderr()); err != nil {
		i.logger.Warn("agent's standard error lost", zap.Error(err))
	}
}

func (i *instance) turnEnded(outcome wire.TurnOutcome) {
	i.touch()
	i.turns.end(outcome)
}

// touch notes activity, which idle reaping spares.
func (i *instance) touch() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.active = i.clock()
}

// become moves to a state unless the present one is not among from.
func (i *instance) become(to wire.InstanceState, from ...wire.InstanceState) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.Contains(from, i.state) {
		return false
	}
	i.state = to
	return true
}

func (i *instance) view() wire.Instance {
	turnID, key := i.turns.current()
	i.mu.Lock()
	defer i.mu.Unlock()
	v := wire.Instance{
		ID: i.id, SessionID: i.request.SessionID, TaskID: i.request.TaskID,
		Generation: i.request.Generation, State: i.state, ProviderSessionID: i.providerSessionID,
		OpenTurnID: turnID, OpenTurnKey: key, LastSeq: i.log.LastSeq(), CreatedAt: i.created,
	}
	if i.process != nil && v.Alive() {
		v.PID, v.ProcessStart = i.process.PID(), i.process.StartIdentity()
	}
	return v
}

// announcePatience is how long a stalled reader may keep a permission request
// from being announced before it is cancelled (S-001.9).
const announcePatience = 5 * time.Second

// recorder appends to the instance's log and notes the activity.
type recorder struct{ i *instance }

func (r recorder) Append(ctx context.Context, kind wire.EventKind, turnID string, payload json.RawMessage) (int64, error) {
	r.i.touch()
	return r.i.log.Append(ctx, kind, turnID, payload)
}

func (r recorder) Stalled(ctx context.Context, appended <-chan int64) bool {
	return r.i.log.Stalled(ctx, announcePatience, appended)
}
