package integration

import (
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/backend/tied"
)

var parentLine = regexp.MustCompile(`(?m)^PPid:\s+(\d+)$`)

// parentOf is the process that started the process.
func (w *world) parentOf(pid int) int {
	w.t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	require.NoError(w.t, err)
	found := parentLine.FindSubmatch(status)
	require.NotNil(w.t, found)
	parent, err := strconv.Atoi(string(found[1]))
	require.NoError(w.t, err)
	return parent
}

// S-005.3, S-003.6: the tied control server is ended while its backend lives. Its
// sessions are resumable once their agents are proven gone, and the next launch
// gets another server. Nothing of it concerns the server that may be adopted.
func TestATiedServerThatEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start().serving()
	stays, goes, deaf := w.agent("stays"), w.passthrough("goes"), w.passthrough("deaf", unhearing...)
	goes.ready()
	deaf.ready()
	server := w.parentOf(goes.pid)
	require.Equal(t, w.backend.process.PID(), w.parentOf(server))
	require.Equal(t, server, w.parentOf(deaf.pid), "one for all")
	w.watch(server)
	goes.prompt("one", "stream until file go every 5ms")
	u := &unattended{world: w, db: w.store()}
	u.dial()
	require.NotEqual(t, u.record.PID, server)

	require.NoError(t, syscall.Kill(server, syscall.SIGKILL))
	u.isTied(goes, tied.CauseServerEnded)
	next := w.passthrough("next")
	next.ready()
	require.NotEqual(t, server, w.parentOf(next.pid))
	require.Equal(t, "WAITING_FOR_INPUT", string(deaf.view().State), "its agent lives on")
	require.NoError(t, syscall.Kill(deaf.pid, syscall.SIGKILL))
	u.isTied(deaf, tied.CauseServerEnded)
	for _, a := range []*agent{stays, next} {
		a.prompt("one", "stream 3")
		a.ended("one")
		a.unharmed()
	}
}
