package integration

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// environ is the environment that the process was born with.
func environ(t *testing.T, pid int) [][]byte {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	require.NoError(t, err)
	return bytes.Split(raw, []byte{0})
}

// B-14: nothing of the control server's birth environment reaches an agent but
// what is on the short list, neither that of the boot that started the server
// nor that of one that adopted it.
func TestAgentsDoNotInheritTheServersEnvironment(t *testing.T) {
	w := newWorld(t)
	w.wrapped(`STRAY=of-the-server exec "` + programs.agentctl + `"`)
	w.settings["KANDEV_STRAY"] = "of-the-backend"
	w.start().serving()
	agents := []*agent{w.agent("first")}
	u := leave(w)
	w.start("KANDEV_OTHER=of-the-adopter").serving()
	agents = append(agents, w.agent("second"))

	server := environ(t, u.record.PID)
	require.Contains(t, server, []byte("STRAY=of-the-server"))
	for _, a := range agents {
		env := environ(t, a.pid)
		require.Contains(t, env, []byte("PATH="+w.settings["PATH"]))
		for _, entry := range env {
			require.NotContains(t, string(entry), "STRAY")
			require.NotContains(t, string(entry), "of-the-")
		}
	}
}
