//go:build linux

package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/launch"
	"github.com/kandev/recovery/agentctl/logfile"
	"github.com/kandev/recovery/agentctl/wire"
)

func gone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !running(pid) }, deadline, 10*time.Millisecond)
}

// S-001.2, S-005.1, B-14: a detached server and its agent outlive a backend that
// is killed, and nothing ties them to it: no descriptor, no session, no
// environment, nothing secret in the arguments.
func TestDetachedServerOutlivesItsParent(t *testing.T) {
	t.Parallel()
	start := config(t, true)
	p := startParent(t, start, true)
	c := p.client()
	defer c.Close()
	agent := startAgent(t, c, "i")

	require.Contains(t, descriptors(t, p.Process.Pid), "3", "what the parent inherited without asking")
	require.NotEqual(t, session(t, p.Process.Pid), session(t, p.PID))
	require.Equal(t, p.PID, session(t, p.PID))
	parents := map[string]bool{}
	for _, target := range descriptors(t, p.Process.Pid) {
		parents[target] = strings.HasPrefix(target, "pipe:")
	}
	require.Eventually(t, func() bool {
		for _, target := range descriptors(t, p.PID) {
			if parents[target] {
				return false
			}
		}
		return true
	}, deadline, 10*time.Millisecond, "a pipe to the parent is left")
	open := descriptors(t, p.PID)
	for _, standard := range []string{"0", "1", "2"} {
		require.Equal(t, os.DevNull, open[standard])
	}
	require.Equal(t, binary, strings.Trim(procFile(t, p.PID, "cmdline"), "\x00"))
	for _, pid := range []int{p.PID, agent.PID} {
		environ := procFile(t, pid, "environ")
		require.NotContains(t, environ, "KANDEV_PARENT_PIPE_FD")
		require.NotContains(t, environ, "BACKEND_SECRET")
		require.NotContains(t, environ, p.Credential)
	}

	p.kill()
	list, err := c.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, agent.PID, list[0].PID)
	require.Equal(t, wire.InstanceReady, list[0].State)
	kill(t, p.PID, unix.SIGHUP)
	kill(t, p.PID, unix.SIGPIPE)
	_, err = c.Claim(t.Context())
	require.NoError(t, err)

	require.NoError(t, c.Shutdown(t.Context()))
	gone(t, p.PID)
	gone(t, agent.PID)
	_, err = c.Identity(t.Context())
	require.ErrorIs(t, err, client.ErrRefused)
}

// S-001.3: the server's own log under its home, for its owner only, without
// anything secret.
func TestOwnLog(t *testing.T) {
	t.Parallel()
	start := config(t, true)
	p := startParent(t, start, true)
	c := p.client()
	defer c.Close()
	startAgent(t, c, "i")
	details, err := c.Details(t.Context())
	require.NoError(t, err)
	require.Equal(t, logfile.Path(start.Home, ""), details.DiagnosticLogPath)
	require.Equal(t, start.Home, details.Home)
	require.NoError(t, c.Shutdown(t.Context()))
	gone(t, p.PID)

	info, err := os.Stat(details.DiagnosticLogPath)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	content, err := os.ReadFile(details.DiagnosticLogPath)
	require.NoError(t, err)
	require.Contains(t, string(content), "control server ended")
	for _, secret := range []string{p.Credential, "hunter2", "hunter3"} {
		require.NotContains(t, string(content), secret)
	}
}

// S-005.1: a bound server ends with its backend, and its agents with it.
func TestBoundServerEndsWithItsParent(t *testing.T) {
	t.Parallel()
	p := startParent(t, config(t, false), true)
	c := p.client()
	defer c.Close()
	agent := startAgent(t, c, "i")
	p.kill()
	gone(t, p.PID)
	gone(t, agent.PID)
}

// B-26: a server whose backend dies before it is recorded ends.
func TestUnrecordedServerEnds(t *testing.T) {
	t.Parallel()
	p := startParent(t, config(t, true), false)
	p.kill()
	gone(t, p.PID)
}

// startHere starts a server from this process, and checks in the end that it
// ended well: the race detector of the binary would say otherwise.
func startHere(t *testing.T, start wire.StartConfig) (*launch.Launched, *client.Client) {
	t.Helper()
	core, logged := observer.New(zap.InfoLevel)
	l, err := launch.Start(t.Context(), launch.Spec{
		Executable: binary, Config: start, HTTPTimeout: deadline, Logger: zap.New(core),
	})
	require.NoError(t, err)
	c := client.New(client.Config{
		Endpoint: l.Endpoint, Fingerprint: l.Fingerprint, Credential: l.Issued.Credential, HTTPTimeout: deadline,
	})
	t.Cleanup(func() {
		c.Close()
		<-l.Exited()
		ended := logged.FilterMessage("control server ended").All()
		require.Len(t, ended, 1)
		if reason, failed := ended[0].ContextMap()["error"]; failed {
			require.Equal(t, "signal: killed", reason)
		}
	})
	return l, c
}

// B-26: a server that cannot be recorded is ended by its backend at once. One
// that is recorded and detached is not the launcher's to end any more.
func TestAbort(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	unrecorded, _ := startHere(t, config(t, true))
	require.NoError(t, unrecorded.Abort(ctx))
	require.False(t, running(unrecorded.PID))

	l, c := startHere(t, config(t, true))
	require.NoError(t, l.Recorded())
	require.NoError(t, l.Recorded())
	require.ErrorIs(t, l.Abort(ctx), launch.ErrRecorded)
	require.NoError(t, c.Shutdown(t.Context()))
	<-l.Exited()

	l, c = startHere(t, config(t, false))
	require.NoError(t, l.Recorded())
	agent := startAgent(t, c, "i")
	require.NoError(t, l.Abort(ctx), "a bound one ends with its tie")
	require.False(t, running(l.PID))
	require.False(t, running(agent.PID))
}

// B-26: a server that does not end when it is let go of is killed.
func TestAbortKills(t *testing.T) {
	t.Parallel()
	l, _ := startHere(t, config(t, true))
	kill(t, l.PID, unix.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.Abort(ctx), context.DeadlineExceeded)
	require.False(t, running(l.PID))
}

// A host that asks the server to end gets its agents ended too.
func TestTermination(t *testing.T) {
	t.Parallel()
	l, c := startHere(t, config(t, true))
	require.NoError(t, l.Recorded())
	agent := startAgent(t, c, "i")
	kill(t, l.PID, unix.SIGTERM)
	<-l.Exited()
	require.False(t, running(agent.PID))
}

// S-001.8, O-001.12: a configuration that is no good is refused with the value
// named, and no server stays.
func TestRefusedConfigurations(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*wire.StartConfig){
		"event_limit 0":     func(c *wire.StartConfig) { c.EventLimit = 0 },
		"event_limit 10001": func(c *wire.StartConfig) { c.EventLimit = 10_001 },
		"port 70000":        func(c *wire.StartConfig) { c.Port = 70_000 },
	} {
		start := config(t, true)
		change(&start)
		_, err := launch.Start(t.Context(), launch.Spec{
			Executable: binary, Config: start, HTTPTimeout: deadline, Logger: zap.NewNop(),
		})
		var refusal *wire.Error
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, wire.CodeBadRequest, refusal.Code)
		require.Contains(t, refusal.Message, name)
	}
	start := config(t, true)
	start.Host = "0.0.0.0"
	_, err := launch.Start(t.Context(), launch.Spec{
		Executable: binary, Config: start, HTTPTimeout: deadline, Logger: zap.NewNop(),
	})
	require.ErrorIs(t, err, launch.ErrNotReady)
}

// O-003.4, O-003.6, O-003.7: the period in force is told to the owner, and every
// adjustment of the configured one is recorded in the details.
func TestAdjustedPeriodIsRecorded(t *testing.T) {
	t.Parallel()
	const minute = int64(time.Minute / time.Millisecond)
	for name, test := range map[string]struct {
		unowned, idle, want int64 // milliseconds
		adjustments         []string
	}{
		"half the idle timeout":             {10 * minute, 10 * minute, 5 * minute, []string{"idle timeout"}},
		"reaping off":                       {90 * minute, 0, 90 * minute, nil},
		"the floor after half the idleness": {10 * minute, minute, minute, []string{"idle timeout", "minimum"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := config(t, true)
			start.UnownedPeriodMS, start.IdleTimeoutMS = test.unowned, test.idle
			l, c := startHere(t, start)
			details, err := c.Details(t.Context())
			require.NoError(t, l.Abort(t.Context()))
			require.NoError(t, err)
			require.Equal(t, test.want, l.Issued.UnownedPeriodMS)
			require.Len(t, details.Adjustments, len(test.adjustments))
			for i, adjustment := range test.adjustments {
				require.Contains(t, details.Adjustments[i], adjustment)
			}
		})
	}
}
