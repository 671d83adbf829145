package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/demo"
	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

// S-001.1, S-001.2, S-001.4, S-001.5, S-001.7, S-002.2, S-002.3, S-002.9,
// S-003.2 to S-003.5, S-004.1, S-004.2, O-002.1, B-1, B-9: the main job. Agents
// of four kinds go through the end of the backend, by SIGKILL and by its own
// shutdown, and come out as the same processes with complete transcripts.
func TestAgentsSurviveTheirBackend(t *testing.T) {
	t.Parallel()
	endings := map[string]func(*backend){"killed": (*backend).kill, "shut down": (*backend).terminate}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start().serving()
			streams, ends, asks, idle := w.agent("streams"), w.agent("ends"), w.agent("asks"), w.agent("idle")
			streams.prompt("one", `stream until file go every 5ms`)
			ends.prompt("one", `stream 5; wait file go; stream 5`)
			asks.prompt("one", `stream 5; wait file go; ask; stream 5`)
			w.eventually("the agents work", func() bool {
				return streams.produced().Updates > 3 && ends.produced().Updates == 5 && asks.produced().Updates == 5
			})
			end(w.backend)

			before := streams.produced().Updates
			ends.touch("go")
			asks.touch("go")
			w.eventually("the agents go on without a backend", func() bool {
				return ends.produced().Ends == 1 && asks.produced().Asks == 1 && streams.produced().Updates > before
			})
			second := w.start().serving()
			status := second.status
			require.True(t, status.Control.Adopted)
			require.Equal(t, recovery.VerdictAdoptable, status.Recovery.Verdict)
			require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 4}, status.Recovery.Counts)

			// S-004.2: a turn that ended meanwhile is applied before its session
			// is published; one that is open leaves its session running.
			require.Equal(t, []string{"RUNNING>WAITING_FOR_INPUT retracked"}, ends.transitions(status.BootID))
			require.Equal(t, []string{"RUNNING>RUNNING retracked"}, streams.transitions(status.BootID))
			require.Equal(t, recovery.TaskInProgress, streams.view().TaskState)
			require.Equal(t, recovery.TaskReview, ends.view().TaskState)

			asks.answer(fakeagent.OptionAllow)
			streams.touch("go")
			for _, a := range []*agent{streams, ends, asks} {
				require.Equal(t, "end_turn", a.ended("one").Turn.StopReason)
			}
			for _, a := range []*agent{streams, ends, asks, idle} {
				a.prompt("two", "stream 3")
				a.ended("two")
				a.unharmed()
			}
		})
	}
}

// answer waits for a permission request of the agent and settles it.
func (a *agent) answer(option string) {
	a.w.t.Helper()
	asked := a.await("asks", func(s userapi.Session) bool { return len(s.Pending) == 1 })
	request := asked.Pending[0].RequestID
	require.NoError(a.w.t, a.w.backend.client.AnswerPermission(a.w.t.Context(), a.session, request, userapi.PermissionAnswer{OptionID: option}))
}

// unharmed checks that the agent is undisturbed, and that its transcript is
// exactly what it produced.
func (a *agent) unharmed() {
	a.w.t.Helper()
	a.undisturbed()
	a.complete()
}

// undisturbed checks that the agent is still the process that it was, that it was
// started and opened once and never reopened, and that its tree is untouched.
func (a *agent) undisturbed() {
	t := a.w.t
	t.Helper()
	require.Equal(t, a.pid, a.view().Agent.PID)
	require.Equal(t, 1, a.calls(fakeagent.MethodStart))
	require.Equal(t, 1, a.calls(acp.AgentMethodSessionNew))
	require.Zero(t, a.calls(acp.AgentMethodSessionLoad)+a.calls(acp.AgentMethodSessionResume))
	a.untouched()
}

// untouched checks that the agent's tree is byte for byte what it was, but for
// the file by which the test let the agent go on (S-001.7).
func (a *agent) untouched() {
	t := a.w.t
	t.Helper()
	if err := os.Remove(filepath.Join(a.tree, "go")); !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	print, err := demo.Fingerprint(a.tree)
	require.NoError(t, err)
	require.Equal(t, a.print, print)
}

// complete waits until everything is committed, which may be after a kept outcome
// was applied, and checks that the transcript is exactly what the agent produced.
func (a *agent) complete() {
	a.w.t.Helper()
	a.w.eventually("everything is committed", func() bool {
		return demo.Compare(a.produced(), a.transcript()).Gaps == 0
	})
	a.matches(a.transcript())
}

// matches checks that these events are exactly what the agent produced.
func (a *agent) matches(events []userapi.Event) {
	t := a.w.t
	t.Helper()
	for _, e := range events {
		require.NotEqual(t, store.EventKindGap, e.Kind, "events were lost before position %d", e.Position)
	}
	tally := demo.Compare(a.produced(), events)
	require.True(t, tally.Clean(), "%+v", tally)
	require.Equal(t, tally.Produced, tally.Committed)
}

// B-1: whatever the moment at which the backend dies between the control server
// and Postgres, the transcript has no gap and no duplicate. An acknowledgement
// before the commit would lose the batch at the first point; a commit that is
// not idempotent would double it at the second.
func TestNoEventIsLostAroundACommit(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"pump.before_commit", "pump.after_commit"} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			w.start().serving()
			a := w.agent("streams")
			w.backend.kill()
			crashing := w.start("KANDEV_CRASH_AT=" + point).serving()
			// The backend may die before it answers; the prompt is recorded then.
			if _, err := crashing.client.Prompt(t.Context(), a.session, "one", "stream 50 every 1ms"); err != nil {
				t.Log(err)
			}
			crashing.died()
			w.eventually("the turn ends", func() bool { return a.produced().Ends == 1 })
			w.start().serving()
			a.ended("one")
			a.unharmed()
		})
	}
}

// B-1: the backend dies after a commit that agents shared, before any of them is
// acknowledged. Each has every event once.
func TestNoEventIsLostAroundASharedCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start().serving()
	var agents []*agent
	for i := range 6 {
		agents = append(agents, w.agent(fmt.Sprintf("shares-%d", i)))
	}
	for _, a := range agents {
		a.prompt("one", "wait file go; stream 2000 every 500us")
	}
	w.backend.kill()
	for _, a := range agents {
		a.touch("go") // all have something waiting for the next backend
	}
	w.start("KANDEV_CRASH_AT=pump.after_shared_commit").died()
	w.start().serving()
	for _, a := range agents {
		a.ended("one")
		a.committedExactly(2002)
		a.undisturbed()
	}
}

// B-17, S-004.2, W-3: a prompt that was recorded and may not have reached the
// agent is sent again by its key and arrives once.
func TestAPromptArrivesOnceAroundACrash(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"api.prompt_recorded", "api.prompt_sent"} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			w.start().serving()
			a := w.agent("prompted")
			w.backend.kill()
			crashing := w.start("KANDEV_CRASH_AT=" + point).serving()
			_, err := crashing.client.Prompt(t.Context(), a.session, "one", "stream 5")
			require.Error(t, err)
			crashing.died()
			w.start().serving()
			require.Equal(t, "end_turn", a.ended("one").Turn.StopReason)
			require.Equal(t, 1, a.calls(acp.AgentMethodSessionPrompt))
			a.unharmed()
		})
	}
}

// W-3, B-17, R-6: a start that its backend did not survive goes on under the
// next one, with one agent.
func TestAStartGoesOnUnderTheNextBackend(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"launch.begun", "launch.created", "launch.published"} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			w.start().serving()
			w.backend.kill()
			crashing := w.start("KANDEV_CRASH_AT=" + point).serving()
			a := w.created("started")
			crashing.died()
			w.start().serving()
			a.ready()
			a.prompt("one", "stream 3")
			a.ended("one")
			a.unharmed()
		})
	}
}

// R-6, W-3: an agent that was published just before its backend died lives on, also
// when its launch's deadline passes before there is a backend that could say so.
func TestAPublishedAgentOutlivesItsLaunch(t *testing.T) {
	t.Parallel()
	const deadline = 10 * time.Second
	w := newWorld(t)
	w.start().serving()
	w.backend.kill()
	crashing := w.start("KANDEV_CRASH_AT=launch.published", "KANDEV_LAUNCH_DEADLINE="+deadline.String()).serving()
	a := w.created("published")
	crashing.died()
	w.passes(deadline)
	w.start().serving()
	w.eventually("its launch is over", func() bool { return !a.starting() })
	a.ready()
	a.prompt("one", "stream 3")
	a.ended("one")
	a.unharmed()
}

// S-001.4, S-004.1: an agent that this project did not write goes through the
// same, with its permission request answered after the second restart, once: of
// two answers at the same time one finds it settled (S-001.9).
func TestAForeignAgentSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start().serving()
	require.NoError(t, w.backend.client.PutProfile(t.Context(), userapi.Profile{ID: "example", Agent: "example", Command: []string{programs.example}}))
	created, err := w.backend.client.CreateSession(t.Context(), userapi.CreateSession{ProfileID: "example", Workspace: w.tree("example")})
	require.NoError(t, err)
	a := &agent{w: w, session: created.ID}
	a.ready()
	a.prompt("one", "hello")
	asked := a.await("asks", func(s userapi.Session) bool { return len(s.Pending) == 1 })
	for range 2 {
		w.backend.kill()
		w.start().serving()
		require.Equal(t, asked.Pending, a.await("still asks", func(s userapi.Session) bool { return len(s.Pending) == 1 }).Pending)
	}
	var params struct {
		Options []struct {
			OptionID string `json:"optionId"`
		} `json:"options"`
	}
	require.NoError(t, json.Unmarshal(asked.Pending[0].Params, &params))
	answers := make(chan error, 2)
	for range cap(answers) {
		go func() {
			answers <- w.backend.client.AnswerPermission(t.Context(), a.session, asked.Pending[0].RequestID,
				userapi.PermissionAnswer{OptionID: params.Options[0].OptionID})
		}()
	}
	first, second := <-answers, <-answers
	if first != nil {
		first, second = second, first
	}
	require.NoError(t, first)
	var refusal *userapi.Error
	require.ErrorAs(t, second, &refusal)
	require.Equal(t, userapi.CodeConflict, refusal.Code)
	require.Equal(t, "end_turn", a.ended("one").Turn.StopReason)
	require.Equal(t, a.pid, a.view().Agent.PID)
	require.Zero(t, demo.Holes(a.transcript()))
}
