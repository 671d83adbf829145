package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
)

// unhearing are the arguments of an agent that only SIGKILL ends, as long as it
// is idle: what it writes after its output was closed ends it as well.
var unhearing = []string{"--ignore-sigterm", "--ignore-eof"}

// orphans are agents of no session, each with what makes it hard to end.
var orphans = []struct {
	id, script string
	args       []string
	children   int
	begun      func(*agent) bool
}{
	{id: "deaf", args: unhearing, script: "stream 1", begun: has(1)},
	{id: "parent", script: "spawn grandchild; spawn grandchild setsid; stream 1; wait file never", children: 2, begun: has(1)},
	{id: "dead", script: "spawn grandchild setsid; exit 3", children: 1, begun: func(a *agent) bool { return !a.runs() }},
	// Its log is full, so that its agent waits in a write (S-001.10).
	{id: "paused", script: "stream until file never", begun: has(100)},
}

func has(updates int) func(*agent) bool {
	return func(a *agent) bool { return a.produced().Updates >= updates }
}

// S-002.6, S-002.11, S-001.10, B-6: live instances of no record are stopped with
// their whole trees before users are served, whether they ignore SIGTERM, left
// processes in sessions of their own that hold their output, died first, or wait
// in a full log. The agent of a session beside them is not touched.
func TestOrphansAreStoppedWithTheirTrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start().serving()
	own := w.agent("own")
	own.prompt("one", "stream until file go every 5ms")
	u := leave(w)
	var all []*agent
	for _, o := range orphans {
		a := u.stray("session-of-"+o.id, o.id, o.args...)
		u.tell(o.id, o.script)
		u.eventually(o.id+" has begun", func() bool { return o.begun(a) && len(a.descendants()) == o.children })
		for _, pid := range a.descendants() {
			if identity, ok := alive(pid); ok {
				u.seen[pid] = identity
			}
		}
		all = append(all, a)
	}

	pass := w.start().serving().status.Recovery
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 1}, pass.Counts)
	require.Equal(t, len(orphans), pass.Stopped)
	require.Zero(t, pass.Unstopped)
	for _, a := range all {
		require.False(t, a.runs())
		for _, pid := range a.descendants() {
			require.True(t, gone(pid, u.seen[pid]))
		}
	}
	u.dial()
	require.Len(t, u.instances(), 1)
	own.touch("go")
	own.ended("one")
	own.unharmed()
}
