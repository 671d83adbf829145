package process

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
)

// B-6: descendants that took a session of their own, or lost their parent, are
// stopped too, and none is left as a zombie.
func TestStopEndsTheWholeTree(t *testing.T) {
	dir := t.TempDir()
	p := startRole(t, "family", dir)
	family := announced(t, dir, 4)
	stop(t, p, 50*time.Millisecond)
	requireGone(t, family...)
}

// B-6: what an agent that died first has left is stopped.
func TestStopEndsWhatADeadProcessLeft(t *testing.T) {
	for name, argv := range map[string][]string{
		"in its session":       role("deaf"),
		"in a session":         role("start-in-session", role("deaf")...),
		"without its variable": role("start-bare", role("deaf")...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := startRole(t, "start", append(argv, dir)...)
			left := announced(t, dir, 1)
			requireExit(t, p)
			stop(t, p, 50*time.Millisecond)
			requireGone(t, left...)
		})
	}
}

// Two trees of one program are told apart.
func TestStopSparesOtherTrees(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	p := startRole(t, "family", one)
	q := startRole(t, "family", other)
	mine, theirs := announced(t, one, 4), announced(t, other, 4)
	stop(t, p, 0)
	requireGone(t, mine...)
	requireRunning(t, theirs...)
	stop(t, q, 0)
}

// Membership is decided by what is known, never by a number alone: neither a
// reused pid nor a reused session makes a member (B-12). The pids are beyond
// those that the kernel gives out.
func TestTreeMembers(t *testing.T) {
	const base = 100_000_000
	at := func(pid int, start uint64, ppid, session int) entry {
		return entry{processKey: processKey{base + pid, start}, ppid: base + ppid, session: base + session}
	}
	root := at(10, 50, 1, 10)
	ours := at(11, 60, 1, 10)
	marked := at(13, 60, 1, 13)
	marked.marker = "marker"
	for name, c := range map[string]struct {
		known []entry
		table []entry
		want  []int
	}{
		"root and descendants": {
			table: []entry{root, at(11, 60, 10, 11), at(12, 70, 11, 12), at(13, 70, 1, 13)},
			want:  []int{10, 11, 12},
		},
		"orphan in the root's session":     {table: []entry{root, ours}, want: []int{10, 11}},
		"marked, and its child":            {table: []entry{root, marked, at(14, 70, 13, 14)}, want: []int{10, 13, 14}},
		"session held by a known member":   {known: []entry{ours}, table: []entry{ours, at(12, 70, 1, 10)}, want: []int{11, 12}},
		"session of a reused number":       {table: []entry{at(10, 90, 1, 10), at(11, 95, 10, 10)}},
		"pid of a known member was reused": {known: []entry{ours}, table: []entry{at(11, 95, 1, 10)}},
		"older than the root":              {table: []entry{root, at(9, 40, 1, 10)}, want: []int{10}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTree(root.processKey, "marker")
			tr.know(c.known)
			table := snapshot{entries: c.table, offspring: map[int][]entry{}}
			for _, e := range c.table {
				table.offspring[e.ppid] = append(table.offspring[e.ppid], e)
			}
			var pids []int
			for _, m := range tr.find(table) {
				pids = append(pids, m.pid-base)
			}
			require.ElementsMatch(t, c.want, pids)
		})
	}
}

func TestParseStat(t *testing.T) {
	fields := " S 7 8 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1234 0 0"
	e, err := parseStat(5, []byte("5 (a) b (c)"+fields))
	require.NoError(t, err)
	require.Equal(t, entry{processKey: processKey{5, 1234}, ppid: 7, session: 9}, e)
	for _, bad := range []string{"", "5 (a", "5 (a) S 1", "5 (a) S x" + fields[4:]} {
		_, err := parseStat(5, []byte(bad))
		require.Error(t, err, bad)
	}
}

// A zombie has ended: it has no identity, though its pid is still taken.
func TestZombieIsNoProcess(t *testing.T) {
	cmd := exec.Command("/bin/true")
	require.NoError(t, cmd.Start())
	holdExit(cmd.Process.Pid)
	_, err := readEntry(cmd.Process.Pid)
	require.NoError(t, err)
	_, err = Identity(cmd.Process.Pid)
	require.ErrorIs(t, err, ErrNoProcess)
	require.NoError(t, cmd.Wait())
}

// B-6: orphans that come to us are collected when they end, while the agent
// still runs.
func TestReaperCollectsOrphans(t *testing.T) {
	reaper := StartReaper(zaptest.NewLogger(t))
	defer reaper.Close()
	dir := t.TempDir()
	p := startRole(t, "start", role("deaf", dir)...)
	requireExit(t, p)
	orphan := announced(t, dir, 1)[0]
	e, err := readEntry(orphan)
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), e.ppid, "orphans come to the subreaper")
	require.NoError(t, signalExactly(e.processKey, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		_, err := readEntry(orphan)
		return err != nil
	}, patience, 10*time.Millisecond)
	requireGone(t, orphan)
}

// The reaper takes no child that somebody else waits for: neither of this
// package nor one that was started without it.
func TestReaperLeavesChildrenToTheirParents(t *testing.T) {
	reaper := StartReaper(zaptest.NewLogger(t))
	defer reaper.Close()
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	for range 4 {
		wg.Go(func() {
			for range 25 {
				errs <- exec.Command("/bin/true").Run()
			}
		})
	}
	for range 10 {
		p, err := Start(Spec{Argv: []string{"/bin/sh", "-c", "exit 3"}, Dir: "/", Marker: "m"})
		require.NoError(t, err)
		code, _ := p.ExitStatus()
		require.Equal(t, 3, code)
		p.Close()
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}
