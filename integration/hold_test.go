package integration

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/internal/crashpoint"
)

// hold keeps a backend waiting at a named point, so that a test can have
// something else come about at exactly that moment.
type hold struct {
	t        *testing.T
	settings []string // of the backend that is to wait
	listener *net.TCPListener
	conn     net.Conn
}

func holdAt(t *testing.T, point string) *hold {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	h := &hold{t: t, listener: listener, settings: []string{
		crashpoint.EnvHoldAt + "=" + point, crashpoint.EnvHoldBy + "=" + listener.Addr().String(),
	}}
	t.Cleanup(h.release)
	return h
}

// reached waits until the backend waits.
func (h *hold) reached() {
	h.t.Helper()
	require.NoError(h.t, h.listener.SetDeadline(time.Now().Add(patience)))
	var err error
	h.conn, err = h.listener.Accept()
	require.NoError(h.t, err, "the point was not reached")
}

// release lets the backend go on. It may be repeated.
func (h *hold) release() {
	h.listener.Close()
	if h.conn != nil {
		h.conn.Close()
	}
}

// starve stops a process, which is alive and answers nothing then, as on a
// machine that has no time for it. Feed lets it go on.
func (w *world) starve(pid int) (feed func()) {
	w.t.Helper()
	require.NoError(w.t, syscall.Kill(pid, syscall.SIGSTOP))
	feed = func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); !errors.Is(err, syscall.ESRCH) {
			require.NoError(w.t, err)
		}
	}
	w.t.Cleanup(feed)
	return feed
}

// alive returns the start identity of a process that there is.
func alive(pid int) (identity string, ok bool) {
	identity, err := process.Identity(pid)
	return identity, err == nil
}

// stepsOr returns the steps of an adoption at which a test tries something: all
// of them in the long run.
func stepsOr(representative ...string) []string {
	if !long() {
		return representative
	}
	var all []string
	for _, step := range adoptionSteps {
		all = append(all, step.name)
	}
	return all
}
