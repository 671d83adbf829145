package integration

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
	"github.com/kandev/recovery/worker"
)

// S-002.8, W-7, B-22, O-002.4, S-005.7: what users click while a pass is at any
// of its steps. A prompt is refused at once, retryably, and works afterwards. A
// stop is accepted, also repeated, and is carried out. A new session gets its
// agent. A second backend on the same home is refused and disturbs nothing.
func TestClicksDuringRecovery(t *testing.T) {
	t.Parallel()
	for _, step := range stepsOr("enumerated") {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			w.start().serving()
			stays, leaves := w.agent("stays"), w.agent("leaves")
			for _, a := range []*agent{stays, leaves} {
				a.prompt("one", "stream until file go every 5ms")
			}
			u := leave(w)
			h := holdAt(t, "adoption."+step)
			b := w.start(h.settings...)
			h.reached()
			if !settledBefore(step) {
				refused(t, stays, userapi.CodeRecovering)
			}
			for range 2 {
				require.NoError(t, b.client.Stop(t.Context(), leaves.session))
			}
			w.refusesAnother()
			added := w.created("added")
			h.release()

			b.serving()
			leaves.await("is cancelled", func(s userapi.Session) bool { return s.State == recovery.StateCancelled })
			require.False(t, leaves.runs())
			require.Equal(t, recovery.TurnCancelled, leaves.view().Turn.State)
			leaves.untouched()
			kept, err := u.db.GetRecord(t.Context(), u.installation(), leaves.session)
			require.NoError(t, err)
			require.NotEmpty(t, kept.ResumeToken)
			added.ready()
			stays.touch("go")
			stays.ended("one")
			for _, a := range []*agent{stays, added} {
				a.prompt("two", "stream 3")
				a.ended("two")
				a.unharmed()
			}
			b.kill()
		})
	}
}

// settledBefore reports whether sessions may be published when the step is
// reached.
func settledBefore(step string) bool {
	return step == "published" || step == "closed" || step == "reconciled"
}

// refusesAnother checks that a second backend on the home does not start, and
// says which one is in its way.
func (w *world) refusesAnother() {
	w.t.Helper()
	before, err := home.ReadRuntime(w.home)
	require.NoError(w.t, err)
	out, err := w.command().CombinedOutput()
	require.Error(w.t, err)
	require.Contains(w.t, string(out), before.Address)
	after, err := home.ReadRuntime(w.home)
	require.NoError(w.t, err)
	require.Equal(w.t, before, after)
	require.True(w.t, w.backend.answers())
}

// B-22, R-6, S-003.1: a stop in the middle of a start, whatever its step, leaves
// no agent and a session that says that it was stopped.
func TestAStopDuringAStart(t *testing.T) {
	steps := []string{"created"}
	if long() {
		steps = []string{"begun", "created", "published"}
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			h := holdAt(t, "launch."+step)
			w.start(h.settings...).serving()
			a := w.created("stopped")
			h.reached()
			u := &unattended{world: w, db: w.store()}
			u.dial()
			for _, instance := range u.instances() {
				w.watch(instance.PID)
			}
			for range 2 {
				require.NoError(t, w.backend.client.Stop(t.Context(), a.session))
			}
			a.await("is cancelled", func(s userapi.Session) bool { return s.State == recovery.StateCancelled })
			h.release()
			w.eventually("the launch has given up", func() bool { return !a.starting() })
			require.Empty(t, u.instances())
			require.Nil(t, a.view().Agent)
			for pid, start := range w.seen {
				require.True(t, gone(pid, start))
			}
			require.Equal(t, recovery.StateCancelled, a.view().State)
			a.untouched()
			next := w.agent("next")
			next.prompt("one", "stream 3")
			next.ended("one")
			next.unharmed()
		})
	}
}

// starting reports whether the session's start is running in Temporal.
func (a *agent) starting() bool {
	a.w.t.Helper()
	temporal, err := client.Dial(client.Options{HostPort: a.w.settings["TEMPORAL_ADDRESS"], Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(a.w.t, err)
	defer temporal.Close()
	running, err := (&worker.Engine{Client: temporal}).Running(a.w.t.Context(), a.session)
	require.NoError(a.w.t, err)
	return running
}

// B-22, B-6: a repeated stop joins the one under way: it neither shortens the
// time that an agent has to end by itself nor starts it anew.
func TestARepeatedStopDoesNotEscalate(t *testing.T) {
	const grace = time.Second // half of the read timeout
	w := newWorld(t)
	w.start().serving()
	a := w.agent("deaf", unhearing...)
	a.prompt("one", "spawn grandchild setsid")
	a.ended("one")
	child := a.descendants()[0]
	w.watch(child)
	began := time.Now()
	w.eventually("time to end by itself is over", func() bool {
		require.NoError(t, w.backend.client.Stop(t.Context(), a.session))
		return !a.runs()
	})
	require.GreaterOrEqual(t, time.Since(began), grace)
	require.Less(t, time.Since(began), 5*grace)
	a.await("is cancelled", func(s userapi.Session) bool { return s.State == recovery.StateCancelled })
	require.True(t, gone(child, w.seen[child]))
	require.NoError(t, w.backend.client.Stop(t.Context(), a.session), "a stopped one is stopped already")
	require.Equal(t, []string{"CREATED>STARTING", "STARTING>WAITING_FOR_INPUT", "WAITING_FOR_INPUT>RUNNING", "RUNNING>WAITING_FOR_INPUT", "WAITING_FOR_INPUT>CANCELLED"}, moves(a))
}

// moves are the session's changes of state, without their causes.
func moves(a *agent) []string {
	var out []string
	for _, transition := range a.transitions("") {
		move, _, _ := strings.Cut(transition, " ")
		out = append(out, move)
	}
	return out
}
