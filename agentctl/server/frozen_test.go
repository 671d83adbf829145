//go:build unix

package server_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
)

// ownedProcess is a control server in a process of its own, with one agent.
type ownedProcess struct {
	*exec.Cmd
	owner *client.Client
	agent wire.Instance
	ended chan error
}

func startProcess(t *testing.T) *ownedProcess {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &ownedProcess{Cmd: exec.Command(self), ended: make(chan error, 1)}
	p.Env = append(os.Environ(), envControlServer+"=1")
	p.Stderr = os.Stderr
	stdin, err := p.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	var ready wire.Ready
	said := json.NewDecoder(stdout).Decode(&ready)
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		p.ended <- p.Wait()
	}()
	t.Cleanup(func() {
		p.signal(t, syscall.SIGCONT)
		stdin.Close()
		<-reaped
	})
	require.NoError(t, said)
	stranger := client.New(client.Config{Endpoint: ready.Endpoint, Fingerprint: ready.Fingerprint, HTTPTimeout: deadline})
	t.Cleanup(stranger.Close)
	issued, err := stranger.Handshake(t.Context(), nonce)
	require.NoError(t, err)
	p.owner = stranger.WithCredential(issued.Credential)
	p.agent, err = p.owner.Create(t.Context(), "i", agentRequest(t, nil))
	require.NoError(t, err)
	return p
}

func (p *ownedProcess) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(t, err)
	}
}

// awaitEnd expects that the process ends by itself, and well.
func (p *ownedProcess) awaitEnd(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.ended:
		require.NoError(t, err)
	case <-time.After(deadline):
		t.Fatal("the control server did not end")
	}
}

// freeze stops the process for longer than the period, from a renewal on, and
// returns when it goes on.
func (p *ownedProcess) freeze(t *testing.T) time.Time {
	t.Helper()
	_, err := p.owner.Claim(t.Context())
	require.NoError(t, err)
	p.signal(t, syscall.SIGSTOP)
	<-time.After(frozenPeriod + frozenPeriod/8)
	p.signal(t, syscall.SIGCONT)
	return time.Now()
}

// B-13: a control server that was stopped for longer than the unowned period
// gives its owner the time of one renewal before it judges.
func TestFrozenProcess(t *testing.T) {
	t.Parallel()
	const interval = frozenPeriod / 4
	t.Run("its owner comes back", func(t *testing.T) {
		t.Parallel()
		p := startProcess(t)
		thawed := p.freeze(t)
		<-time.After(interval / 4) // far longer than it takes to judge
		for time.Since(thawed) < 2*interval {
			_, err := p.owner.Claim(t.Context())
			require.NoError(t, err)
			<-time.After(interval / 4)
		}
		require.True(t, alive(p.agent.PID))
		require.NoError(t, p.owner.Shutdown(t.Context()))
		p.awaitEnd(t)
	})
	t.Run("nobody comes", func(t *testing.T) {
		t.Parallel()
		p := startProcess(t)
		thawed := p.freeze(t)
		p.awaitEnd(t)
		require.GreaterOrEqual(t, time.Since(thawed), interval)
		require.False(t, alive(p.agent.PID))
	})
}
