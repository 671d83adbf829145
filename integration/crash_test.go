package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// adoptionSteps are the named moments of an adoption, in order.
var adoptionSteps = []struct {
	name string
	// changed: between this moment and the one before, something changed that
	// outlives the boot.
	changed bool
}{
	{name: "guarded"}, {name: "located"}, {name: "evaluated"}, {"rotated", true}, {"copied", true}, {"stored", true},
	{"confirmed", true}, {name: "enumerated"}, {name: "observed"}, {"published", true}, {name: "closed"}, {"reconciled", true},
}

// occupation is what an agent does while backends die around it.
type occupation struct {
	name   string
	script string // of turn "one"; empty: the agent is idle
	begun  func(*agent) bool
	finish func(*agent)
}

var occupations = []occupation{
	{name: "idle", begun: func(*agent) bool { return true }, finish: func(*agent) {}},
	{
		name: "streaming", script: "stream until file go every 5ms",
		begun:  func(a *agent) bool { return a.produced().Updates > 3 },
		finish: func(a *agent) { a.touch("go") },
	},
	{
		name: "asking", script: "stream 3; ask; stream 3",
		begun:  func(a *agent) bool { return a.produced().Asks == 1 },
		finish: func(a *agent) { a.answer(fakeagent.OptionAllow) },
	},
}

// crew is one world's agents, each with its occupation.
type crew struct {
	*world
	agents []*agent
	does   []occupation
}

// newCrew sets agents to work and kills their backend.
func newCrew(t *testing.T, does ...occupation) *crew {
	t.Helper()
	return crewIn(newWorld(t), does...)
}

func crewIn(w *world, does ...occupation) *crew {
	c := &crew{world: w, does: does}
	c.start().serving()
	for _, o := range does {
		a := c.agent(o.name)
		if o.script != "" {
			a.prompt("one", o.script)
		}
		c.eventually(o.name, func() bool { return o.begun(a) })
		c.agents = append(c.agents, a)
	}
	c.backend.kill()
	return c
}

// crash has boot after boot die at the point.
func (c *crew) crash(point string, times int) {
	c.t.Helper()
	for range times {
		c.start("KANDEV_CRASH_AT=" + point).died()
	}
}

// adopted has one more boot adopt everything, the same processes as ever, and
// kills it.
func (c *crew) adopted() {
	c.t.Helper()
	c.areTracked(c.start())
	c.backend.kill()
}

// areTracked waits until the backend has adopted everything.
func (c *crew) areTracked(b *backend) {
	c.t.Helper()
	status := b.serving().status
	require.True(c.t, status.Control.Adopted)
	require.Equal(c.t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: len(c.agents)}, status.Recovery.Counts)
	for _, a := range c.agents {
		tracked := a.await("has its agent", func(s userapi.Session) bool { return s.Agent != nil })
		require.Equal(c.t, a.pid, tracked.Agent.PID)
		require.False(c.t, gone(a.pid, c.seen[a.pid]))
	}
}

// finish lets every agent end its work under a last backend and checks that
// nothing of it was lost, doubled or begun anew.
func (c *crew) finish() {
	c.t.Helper()
	c.start().serving()
	for i, a := range c.agents {
		if c.does[i].script != "" {
			c.does[i].finish(a)
			require.Equal(c.t, "end_turn", a.ended("one").Turn.StopReason)
		}
		a.prompt("two", "stream 3")
		a.ended("two")
		a.unharmed()
	}
}

// S-002.9, O-002.5, O-002.7, O-002.10, W-3, B-1: whatever the step of its
// adoption at which a boot dies, and however often in a row, the next one adopts
// the same agents, which are idle, in the middle of a turn or waiting for an
// answer. The long run tries every number of deaths with every occupation by
// itself; otherwise one world has them all.
func TestAdoptionGoesOnAfterACrashAtEveryStep(t *testing.T) {
	t.Parallel()
	if !long() {
		survivesCrashes(t, 2, occupations...)
		return
	}
	for _, o := range occupations {
		for times := 1; times <= 3; times++ {
			t.Run(fmt.Sprintf("%s/%d", o.name, times), func(t *testing.T) { survivesCrashes(t, times, o) })
		}
	}
}

func survivesCrashes(t *testing.T, times int, does ...occupation) {
	c := newCrew(t, does...)
	for _, step := range adoptionSteps {
		t.Run(step.name, func(t *testing.T) {
			c.within(t)
			c.crash("adoption."+step.name, times)
			if step.changed || long() {
				c.adopted()
			}
		})
	}
	c.finish()
}
