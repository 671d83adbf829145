package integration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/internal/demo"
	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/internal/stack/child"
	"github.com/kandev/recovery/internal/stack/postgrestest"
	"github.com/kandev/recovery/internal/stack/temporaltest"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/seal"
	"github.com/kandev/recovery/userapi"
)

// patience bounds every wait: long, because it is reached only by a failure.
const patience = 60 * time.Second

// world is one installation with everything that a test of it needs. Its
// Temporal and its Postgres server are shared, which is itself a promise (B-7).
type world struct {
	t        *testing.T
	dir      string // of the test: home, worktrees, agents' records
	home     string
	settings map[string]string
	backend  *backend
	seen     map[int]string // processes that must be gone in the end, with their start identity
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), seen: map[int]string{}}
	w.settings = map[string]string{
		"KANDEV_HOME":                    w.home,
		"KANDEV_DATABASE_DSN":            postgrestest.TestDatabase(t),
		"TEMPORAL_ADDRESS":               temporaltest.Address(t),
		"KANDEV_SERVER_ADDRESS":          "127.0.0.1:0",
		"KANDEV_AGENTCTL_EXECUTABLE":     programs.agentctl,
		"KANDEV_FEATURES_AGENT_SURVIVAL": "true",
		"KANDEV_LAUNCH_DEADLINE":         "30s",
		"KANDEV_AGENTCTL_PORT":           preferredPort(),
		"PATH":                           os.Getenv("PATH"),
		"HOME":                           dir,
	}
	t.Cleanup(w.close)
	return w
}

// worlds counts those of this test binary.
var worlds atomic.Int64

// preferredPort is one that no other test's control server takes when this one's
// is gone, nor anybody who leaves the choice to the system.
func preferredPort() string {
	const from, ports = 20_000, 12_000
	return strconv.FormatInt(from+(int64(os.Getpid())*100+worlds.Add(1))%ports, 10)
}

// close ends everything that the test started and checks that it is gone.
func (w *world) close() {
	if w.backend != nil {
		w.backend.kill()
	}
	if w.t.Failed() {
		w.showLogs()
		defer w.killAll()
	}
	if _, err := os.Stat(w.home); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if out, err := w.command("--end-control-server").CombinedOutput(); err != nil {
		w.t.Errorf("end the control server: %v\n%s", err, out)
	}
	for pid, start := range w.seen {
		w.eventually(fmt.Sprintf("process %d is gone", pid), func() bool { return gone(pid, start) })
	}
}

// killAll leaves nothing of a test that failed, which may have ended before it
// ended an agent that nothing else ends.
func (w *world) killAll() {
	for pid, start := range w.seen {
		if !gone(pid, start) {
			w.t.Logf("process %d is still there: killed", pid)
			require.NoError(w.t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
}

// showLogs prints the ends of the logs of a test that failed.
func (w *world) showLogs() {
	logs, err := filepath.Glob(filepath.Join(w.home, "logs", "*.log"))
	require.NoError(w.t, err)
	for _, log := range append(logs, filepath.Join(w.dir, "backend.out")) {
		content, err := os.ReadFile(log)
		if err != nil {
			w.t.Log(err)
			continue
		}
		w.t.Logf("%s:\n%s", filepath.Base(log), content[max(0, len(content)-6000):])
	}
}

func gone(pid int, start string) bool {
	identity, err := process.Identity(pid)
	return errors.Is(err, process.ErrNoProcess) || (err == nil && identity != start)
}

// watch has close check that the process, alive now, is gone in the end.
func (w *world) watch(pid int) string {
	w.t.Helper()
	start, err := process.Identity(pid)
	require.NoError(w.t, err, "process %d", pid)
	w.seen[pid] = start
	return start
}

func (w *world) environment(extra []string) []string {
	var env []string
	for name, value := range w.settings {
		env = append(env, name+"="+value)
	}
	return append(env, extra...)
}

// command is a run of the backend's program that is not the backend.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(programs.backend, args...)
	cmd.Env = w.environment(nil)
	return cmd
}

// store opens the installation's database beside the backend.
func (w *world) store() *store.Store {
	w.t.Helper()
	sealer, err := seal.Open(w.home)
	require.NoError(w.t, err)
	db, err := store.Open(w.t.Context(), w.settings["KANDEV_DATABASE_DSN"], store.Options{Logger: zap.NewNop(), Sealer: sealer})
	require.NoError(w.t, err)
	w.t.Cleanup(db.Close)
	return db
}

// backend is one running backend process.
type backend struct {
	w       *world
	process *child.Process
	client  *userapi.Client
	status  userapi.Status
}

// start starts a backend and waits until its status page answers, which is
// before it has recovered.
func (w *world) start(extra ...string) *backend {
	w.t.Helper()
	p, err := child.Start(child.Spec{
		Path: programs.backend, Dir: w.dir, Log: filepath.Join(w.dir, "backend.out"), EndWithParent: true,
		Env: w.environment(extra),
	})
	require.NoError(w.t, err)
	b := &backend{w: w, process: p}
	w.backend = b
	w.eventually("the backend answers", func() bool {
		select {
		case <-p.Exited():
			w.t.Fatalf("the backend ended at its start: %v", p.ExitError())
		default:
		}
		return b.answers()
	})
	return b
}

// answers reports whether this process, not an earlier one, answers.
func (b *backend) answers() bool {
	runtime, err := home.ReadRuntime(b.w.home)
	if err != nil || runtime.PID != b.process.PID() {
		return false
	}
	token, err := home.ReadToken(b.w.home)
	if err != nil {
		return false
	}
	b.client = userapi.NewClient("http://"+runtime.Address, token)
	b.status, err = b.client.Status(b.w.t.Context())
	return err == nil && b.status.BootID == runtime.BootID
}

// serving waits until the backend has recovered.
func (b *backend) serving() *backend {
	b.w.t.Helper()
	b.w.eventually("the backend serves", func() bool { return b.answers() && b.status.Phase == userapi.PhaseServing })
	return b
}

// kill ends the backend with SIGKILL.
func (b *backend) kill() { require.NoError(b.w.t, b.process.Kill()) }

// terminate ends the backend by its own shutdown.
func (b *backend) terminate() { require.NoError(b.w.t, b.process.Stop(context.Background(), patience)) }

// died waits for the backend to kill itself at its crash point.
func (b *backend) died() {
	b.w.t.Helper()
	select {
	case <-b.process.Exited():
	case <-time.After(patience):
		require.Fail(b.w.t, "the crash point was not reached")
	}
}

// agent is a session of a test with its scripted agent's own records.
type agent struct {
	w          *world
	session    string
	tree       string
	print      string // the tree's fingerprint before any agent ran
	state, log string
	pid        int
}

// profile makes a profile of a fakeagent with records of its own.
func (w *world) profile(name string, args ...string) (state, log string) {
	w.t.Helper()
	state, log = filepath.Join(w.dir, name+"-state"), filepath.Join(w.dir, name+"-calls")
	require.NoError(w.t, w.backend.client.PutProfile(w.t.Context(), userapi.Profile{
		ID: name, Agent: "fakeagent", Command: append([]string{programs.fakeagent}, args...),
		Env: map[string]string{fakeagent.EnvState: state, fakeagent.EnvLog: log},
	}))
	return state, log
}

// tree makes a git repository for an agent to work in.
func (w *world) tree(name string) string {
	w.t.Helper()
	tree := filepath.Join(w.dir, name+"-tree")
	require.NoError(w.t, os.MkdirAll(tree, 0o700))
	require.NoError(w.t, os.WriteFile(filepath.Join(tree, "work.txt"), []byte("half done\n"), 0o600))
	out, err := exec.Command("git", "init", "--quiet", tree).CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	return tree
}

// agent starts a session with a scripted agent and waits until it is ready.
func (w *world) agent(name string, args ...string) *agent {
	w.t.Helper()
	a := w.created(name, args...)
	a.ready()
	return a
}

// created starts a session and does not wait for its agent.
func (w *world) created(name string, args ...string) *agent {
	w.t.Helper()
	a := &agent{w: w, tree: w.tree(name)}
	var err error
	a.print, err = demo.Fingerprint(a.tree)
	require.NoError(w.t, err)
	a.state, a.log = w.profile(name, args...)
	created, err := w.backend.client.CreateSession(w.t.Context(), userapi.CreateSession{ProfileID: name, Title: name, Workspace: a.tree})
	require.NoError(w.t, err)
	a.session = created.ID
	return a
}

// ready waits until the session has its agent, and remembers the process.
func (a *agent) ready() {
	a.w.t.Helper()
	a.await("waits for input with an agent", func(s userapi.Session) bool {
		return s.State == recovery.StateWaitingForInput && s.Agent != nil
	})
	a.pid = a.view().Agent.PID
	a.w.watch(a.pid)
}

func (a *agent) view() userapi.Session {
	a.w.t.Helper()
	s, err := a.w.backend.client.Session(a.w.t.Context(), a.session)
	require.NoError(a.w.t, err)
	return s
}

// await waits until the session is as described.
func (a *agent) await(what string, is func(userapi.Session) bool) userapi.Session {
	a.w.t.Helper()
	var last userapi.Session
	a.w.eventually("session "+a.session+" "+what, func() bool {
		var err error
		last, err = a.w.backend.client.Session(a.w.t.Context(), a.session)
		return err == nil && is(last)
	})
	return last
}

func (a *agent) prompt(key, script string) {
	a.w.t.Helper()
	_, err := a.w.backend.client.Prompt(a.w.t.Context(), a.session, key, script)
	require.NoError(a.w.t, err)
}

// ended waits until the turn with the key has ended.
func (a *agent) ended(key string) userapi.Session {
	a.w.t.Helper()
	return a.await("ended turn "+key, func(s userapi.Session) bool {
		return s.Turn != nil && s.Turn.Key == key && !s.Turn.State.Open() && s.State == recovery.StateWaitingForInput
	})
}

// calls counts the calls of a method in the agent's own log.
func (a *agent) calls(method string) int {
	a.w.t.Helper()
	all, err := fakeagent.ReadCalls(a.log)
	require.NoError(a.w.t, err)
	n := 0
	for _, c := range all {
		if c.Method == method {
			n++
		}
	}
	return n
}

// produced is what the agent put on its standard output, by its own record.
func (a *agent) produced() fakeagent.Produced {
	a.w.t.Helper()
	histories, err := fakeagent.ReadHistories(a.state)
	require.NoError(a.w.t, err)
	var sum fakeagent.Produced
	for _, h := range histories {
		p := h.Produced()
		sum.Updates, sum.Asks, sum.Ends = sum.Updates+p.Updates, sum.Asks+p.Asks, sum.Ends+p.Ends
	}
	return sum
}

// touch makes the file that a script waits for.
func (a *agent) touch(name string) {
	a.w.t.Helper()
	require.NoError(a.w.t, os.WriteFile(filepath.Join(a.tree, name), nil, 0o600))
}

// eventually waits for a condition.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline.C:
			w.t.Fatalf("it never came about: %s", what)
		case <-tick.C:
		}
	}
}

var errEnough = errors.New("the transcript is complete")

// transcript reads the committed events of the session, up to its newest.
func (a *agent) transcript() []userapi.Event {
	a.w.t.Helper()
	newest := a.view().Position
	var events []userapi.Event
	if newest == 0 {
		return events
	}
	err := a.w.backend.client.Events(a.w.t.Context(), a.session, 0, func(e userapi.Event) error {
		events = append(events, e)
		if e.Position >= newest {
			return errEnough
		}
		return nil
	})
	require.ErrorIs(a.w.t, err, errEnough)
	return events
}

// transitions describes the session's changes of state, as "FROM>TO cause".
func (a *agent) transitions(boot string) []string {
	a.w.t.Helper()
	rows, err := a.w.backend.client.Transitions(a.w.t.Context(), a.session)
	require.NoError(a.w.t, err)
	var out []string
	for _, r := range rows {
		if boot == "" || r.BootID == boot {
			out = append(out, fmt.Sprintf("%s>%s %s", r.From, r.To, strings.SplitN(r.Cause, ":", 2)[0]))
		}
	}
	return out
}
