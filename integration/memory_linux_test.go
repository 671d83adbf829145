package integration

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// largest is the frame that is still kept whole.
const largest = 8 << 20

// working is how many such frames the control server needs for an agent beyond
// what it keeps: the line that it reads, the event that it makes of it, and twice
// what is on its way to the backend.
const working = 4

// S-001.5, S-001.6, B-1, B-8: detached agents that all say 8 MiB at a time do not
// make the control server grow beyond its budget and what its work on them takes.
// They pause there, and everything comes with the next attach.
func TestDetachedAgentsStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	count := 3
	if long() {
		count = 20
	}
	const (
		updates  = 3
		size     = largest - 4<<10 // of an update's text, within a whole frame
		each     = 2               // that an instance keeps in its 16 MiB
		together = 32              // that all of them keep in 256 MiB
	)
	want := min(count*each, together)
	w := newWorld(t)
	w.start().serving()
	var agents []*agent
	for i := range count {
		a := w.agent(fmt.Sprintf("bulky-%d", i))
		a.prompt("one", fmt.Sprintf("complain until file %s; wait file go; stream %d size %d",
			filepath.Join(w.dir, "quiet"), updates, size))
		agents = append(agents, a)
	}
	u := leave(w)
	for _, a := range agents {
		a.touch("go")
	}
	u.eventually("the bounds are reached", func() bool { return u.updatesKept() == want })
	for _, a := range agents {
		a.pauses(0)
	}
	require.Equal(t, want, u.updatesKept())
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "quiet"), nil, 0o600))

	w.start().serving()
	for _, a := range agents {
		require.Equal(t, "end_turn", a.ended("one").Turn.StopReason)
		w.eventually("its last event is committed", func() bool { return a.view().Position == updates+2 })
		require.Equal(t, largeTurns(1, updates), w.large(a.session, size))
		require.Equal(t, 1, a.turnsEnded())
		a.undisturbed()
	}
	// The collector lets garbage grow to as much as there is in use.
	bound := 2 * int64(want+count*working) * largest
	peak := peakMemory(t, u.record.PID)
	t.Logf("the control server had at most %d MiB of %d", peak>>20, bound>>20)
	require.LessOrEqual(t, peak, bound)
}

// updatesKept counts what the control server keeps beside the beginnings of turns.
func (u *unattended) updatesKept() int {
	u.t.Helper()
	kept := 0
	for _, instance := range u.instances() {
		kept += int(instance.LastSeq) - 1
	}
	return kept
}

// peakMemory is the most that the process ever had resident, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			require.NoError(t, err)
			return kilobytes << 10
		}
	}
	require.Fail(t, "the kernel does not say")
	return 0
}
