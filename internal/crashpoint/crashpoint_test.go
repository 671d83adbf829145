package crashpoint_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/crashpoint"
)

// A tagged build dies at the selected point only, at most once when told so; a
// build without the tag never does.
func TestOnlyTaggedBuildsDie(t *testing.T) {
	dir := t.TempDir()
	tagged, plain := filepath.Join(dir, "tagged"), filepath.Join(dir, "plain")
	build(t, tagged, "-tags", "crashpoints")
	build(t, plain)
	marker := filepath.Join(dir, "once")
	here, elsewhere := crashpoint.EnvAt+"=victim.here", crashpoint.EnvAt+"=victim.elsewhere"
	once := crashpoint.EnvOnce + "=" + marker

	require.True(t, survives(t, plain, here))
	require.True(t, survives(t, tagged))
	require.True(t, survives(t, tagged, elsewhere))
	require.False(t, survives(t, tagged, here))
	require.False(t, survives(t, tagged, here, once))
	require.True(t, survives(t, tagged, here, once), "the marker of the first death is there")
}

// A tagged build waits at the selected point until its holder lets it go on; a
// build without the tag does not.
func TestOnlyTaggedBuildsWait(t *testing.T) {
	dir := t.TempDir()
	tagged, plain := filepath.Join(dir, "tagged"), filepath.Join(dir, "plain")
	build(t, tagged, "-tags", "crashpoints")
	build(t, plain)
	holder, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer holder.Close()
	env := []string{crashpoint.EnvHoldAt + "=victim.here", crashpoint.EnvHoldBy + "=" + holder.Addr().String()}
	require.True(t, survives(t, plain, env...))

	ended := make(chan bool, 1)
	go func() { ended <- survives(t, tagged, env...) }()
	conn, err := holder.Accept()
	require.NoError(t, err)
	require.Empty(t, ended, "it waits")
	require.NoError(t, conn.Close())
	require.True(t, <-ended)
}

func build(t *testing.T, out string, flags ...string) {
	t.Helper()
	args := append([]string{"build", "-o", out}, append(flags, "./testdata/victim")...)
	output, err := exec.Command("go", args...).CombinedOutput()
	require.NoError(t, err, "%s", output)
}

func survives(t *testing.T, binary string, env ...string) bool {
	t.Helper()
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), env...)
	output, err := cmd.Output()
	if err == nil {
		require.Equal(t, "survived\n", string(output))
		return true
	}
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.ExitCode(), "ended by a signal")
	return false
}
