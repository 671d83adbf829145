package integration

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
)

// B-26: a control server that was started and could not be recorded, or whose
// backend died before it was told, ends by itself, also twice in a row; the next
// backend starts another one.
func TestAnUnrecordedControlServerEnds(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"start.launched", "start.copied", "start.recorded"} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			for range 2 {
				w.start("KANDEV_CRASH_AT=" + point).died()
				w.eventually("no control server is left", func() bool { return len(controlServers(t, w.home)) == 0 })
			}
			status := w.start().serving().status
			require.Equal(t, recovery.VerdictFresh, status.Recovery.Verdict)
			require.Len(t, controlServers(t, w.home), 1)
		})
	}
}

// controlServers finds the running control servers of the test by their working
// directory.
func controlServers(t *testing.T, home string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	require.NoError(t, err)
	var found []string
	for _, link := range links {
		exe, err := os.Readlink(link)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			continue
		}
		cwd, err := os.Readlink(filepath.Join(filepath.Dir(link), "cwd"))
		if err == nil && exe == programs.agentctl && cwd == home {
			found = append(found, link)
		}
	}
	return found
}
