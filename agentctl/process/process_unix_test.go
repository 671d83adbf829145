//go:build unix

package process

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

const (
	patience = 10 * time.Second
	// endAtOnce keeps the race detector from delaying a role's exit by a second.
	endAtOnce = "GORACE=atexit_sleep_ms=0"
)

// startRole starts a role in a tree of its own, which the test's end clears.
func startRole(t *testing.T, name string, args ...string) *Process {
	t.Helper()
	p, err := Start(Spec{
		Argv: role(name, args...), Env: []string{endAtOnce}, Dir: t.TempDir(), Marker: credential.NewID(),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		stop(t, p, 0)
		p.Close()
	})
	return p
}

// stop ends the tree beside a reaper, as the control server does: an orphan that
// comes to us only after its parent was collected is collected by it.
func stop(t *testing.T, p *Process, grace time.Duration) {
	t.Helper()
	reaper := StartReaper(zap.NewNop())
	t.Cleanup(reaper.Close)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, p.Stop(ctx, grace))
}

// announced waits for n processes to say their pid and returns these.
func announced(t *testing.T, dir string, n int) []int {
	t.Helper()
	var pids []int
	require.Eventually(t, func() bool {
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != n {
			return false
		}
		pids = nil
		for _, f := range files {
			pid, err := strconv.Atoi(f.Name())
			if err != nil {
				return false
			}
			pids = append(pids, pid)
		}
		return true
	}, patience, 10*time.Millisecond)
	return pids
}

func requireRunning(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		_, err := Identity(pid)
		require.NoError(t, err)
	}
}

// requireGone tells a process that is no more from a zombie. An orphan is dead
// when its stop returns and reaped soon after.
func requireGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool {
			_, err := readEntry(pid)
			return errors.Is(err, ErrNoProcess)
		}, patience, time.Millisecond, "process %d", pid)
	}
}

func requireExit(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Exited():
	case <-time.After(patience):
		require.Fail(t, "the process has not ended")
	}
}

// B-14: the process gets the given environment and its marker, and nothing of
// ours.
func TestStartGivesExactlyTheEnvironment(t *testing.T) {
	t.Setenv("KANDEV_TEST_LEAK", "1")
	p, err := Start(Spec{
		Argv: role("environment"), Env: []string{endAtOnce, "B=2", "A=1", "A=3"}, Dir: t.TempDir(), Marker: "m",
	})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.Equal(t, "A=3\nB=2\n"+endAtOnce+"\n"+wire.EnvInstanceMarker+"=m", string(out))
	requireExit(t, p)
}

func TestStartNamesWhatIsAtFault(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	orphanScript := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(orphanScript, []byte("#!/no/such/interpreter\n"), 0o700))

	for name, c := range map[string]struct {
		spec Spec
		want error
	}{
		"no command":          {Spec{Dir: dir}, ErrCommandNotFound},
		"unknown command":     {Spec{Argv: []string{"no-such-agent"}, Env: []string{"PATH=/usr/bin"}, Dir: dir}, ErrCommandNotFound},
		"without a path":      {Spec{Argv: []string{"sh"}, Dir: dir}, ErrCommandNotFound},
		"relative path entry": {Spec{Argv: []string{"script"}, Env: []string{"PATH=."}, Dir: dir}, ErrCommandNotFound},
		"not executable":      {Spec{Argv: []string{plain}, Dir: dir}, ErrCommandNotFound},
		"no interpreter":      {Spec{Argv: []string{"./script"}, Dir: dir}, ErrCommandNotFound},
		"no directory":        {Spec{Argv: role("exit", "0"), Dir: filepath.Join(dir, "none")}, ErrWorkspace},
		"a file":              {Spec{Argv: role("exit", "0"), Dir: plain}, ErrWorkspace},
		"below a file":        {Spec{Argv: role("exit", "0"), Dir: filepath.Join(plain, "x")}, ErrWorkspace},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(c.spec)
			require.ErrorIs(t, err, c.want)
		})
	}
}

// The command is found in the PATH that the process gets, and runs in its
// directory.
func TestStartUsesTheGivenPath(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "agent"), []byte("#!/bin/sh\npwd -P\n"), 0o700))
	p, err := Start(Spec{Argv: []string{"agent"}, Env: []string{"PATH=/nowhere:" + bin}, Dir: dir, Marker: "m"})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	want, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	require.Equal(t, want, strings.TrimSpace(string(out)))
	requireExit(t, p)
}

func TestExitStatus(t *testing.T) {
	p := startRole(t, "exit", "7")
	code, sig := p.ExitStatus()
	require.Equal(t, 7, code)
	require.Empty(t, sig)

	killed := startRole(t, "deaf", t.TempDir())
	stop(t, killed, 0)
	code, sig = killed.ExitStatus()
	require.Equal(t, -1, code)
	require.Equal(t, "SIGKILL", sig)
}

// A process that ends when asked is not killed.
func TestStopAsksFirst(t *testing.T) {
	dir := t.TempDir()
	p := startRole(t, "polite", dir)
	announced(t, dir, 1)
	stop(t, p, patience)
	_, sig := p.ExitStatus()
	require.Equal(t, "SIGTERM", sig)
}

// B-6: one that ignores being asked is killed after the grace, not before.
func TestStopKillsAfterGrace(t *testing.T) {
	dir := t.TempDir()
	p := startRole(t, "deaf", dir)
	announced(t, dir, 1)
	const grace = 200 * time.Millisecond
	began := time.Now()
	stop(t, p, grace)
	require.GreaterOrEqual(t, time.Since(began), grace)
	_, sig := p.ExitStatus()
	require.Equal(t, "SIGKILL", sig)
	stop(t, p, patience)
}

// B-6: a failed stop names who survived, and can be repeated.
func TestStopNamesSurvivors(t *testing.T) {
	dir := t.TempDir()
	p := startRole(t, "deaf", dir)
	announced(t, dir, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err := p.Stop(ctx, patience)
	var survivors *SurvivorError
	require.ErrorAs(t, err, &survivors)
	require.Equal(t, []int{p.PID()}, survivors.PIDs)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	requireRunning(t, p.PID())
	stop(t, p, 0)
	requireGone(t, p.PID())
}

// B-12: an identity belongs to one process; who has ended has none.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	p := startRole(t, "deaf", dir)
	announced(t, dir, 1)
	identity, err := Identity(p.PID())
	require.NoError(t, err)
	require.Equal(t, identity, p.StartIdentity())
	own, err := Identity(os.Getpid())
	require.NoError(t, err)
	require.NotEqual(t, own, identity)
	stop(t, p, 0)
	for _, pid := range []int{p.PID(), 0, -1, 1 << 30} {
		_, err = Identity(pid)
		require.ErrorIs(t, err, ErrNoProcess)
	}
}

// B-12: a pid whose start time is another's is not signalled, nor are we.
func TestSignalSparesStrangers(t *testing.T) {
	dir := t.TempDir()
	p := startRole(t, "polite", dir)
	announced(t, dir, 1)
	stranger := p.tree.root
	stranger.start--
	require.ErrorIs(t, signalExactly(stranger, 9), ErrNoProcess)
	requireRunning(t, p.PID())

	self, err := readEntry(os.Getpid())
	require.NoError(t, err)
	require.ErrorIs(t, signalExactly(self.processKey, 9), ErrNoProcess)
	first, err := readEntry(1)
	require.NoError(t, err)
	require.ErrorIs(t, signalExactly(first.processKey, 0), ErrNoProcess)
}

// The end is noticed by the process although a descendant holds its output,
// and what was written before is read to its end, also by a reader that was
// paused for longer than the drain.
func TestExitDoesNotWaitForPipeHolders(t *testing.T) {
	dir := t.TempDir()
	const size = 40_000
	p := startRole(t, "shout", strconv.Itoa(size), dir)
	announced(t, dir, 1)
	requireExit(t, p)
	paused := time.NewTimer(drainIdle + drainIdle/4)
	<-paused.C
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.Len(t, out, size)
	errOut, err := io.ReadAll(p.Stderr())
	require.NoError(t, err)
	require.Empty(t, errOut)
}

// A read that waits when the process ends is not left waiting.
func TestExitEndsPendingRead(t *testing.T) {
	dir := t.TempDir()
	p := startRole(t, "start", role("deaf", dir)...)
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.Empty(t, out)
	requireRunning(t, announced(t, dir, 1)...)
}
