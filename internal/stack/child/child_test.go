package child

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func shell(t *testing.T, script string) Spec {
	path, err := exec.LookPath("sh")
	require.NoError(t, err)
	dir := t.TempDir()
	return Spec{Path: path, Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "WORD=from the spec"}, Dir: dir, Log: filepath.Join(dir, "log")}
}

func awaitLog(t *testing.T, spec Spec, text string) {
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(spec.Log)
		return err == nil && strings.Contains(string(log), text)
	}, 5*time.Second, time.Millisecond)
}

func TestStopLetsTheProgramEndByItself(t *testing.T) {
	spec := shell(t, `trap 'echo ending; exit 0' TERM; echo "$WORD"; while :; do sleep 0.01; done`)
	p, err := Start(spec)
	require.NoError(t, err)
	awaitLog(t, spec, "from the spec")
	require.NoError(t, p.Stop(t.Context(), 5*time.Second))
	awaitLog(t, spec, "ending")
	require.NoError(t, p.ExitError())
	require.NoError(t, p.Stop(t.Context(), 0), "a repeated stop succeeds")
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	spec := shell(t, `trap '' TERM; echo ready; while :; do sleep 0.01; done`)
	p, err := Start(spec)
	require.NoError(t, err)
	awaitLog(t, spec, "ready")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Stop(ended, time.Hour), ErrKilled)
	<-p.Exited()
	require.Error(t, p.ExitError())
}

func TestStartReportsAMissingProgram(t *testing.T) {
	spec := shell(t, "")
	spec.Path = filepath.Join(spec.Dir, "absent")
	_, err := Start(spec)
	require.ErrorIs(t, err, os.ErrNotExist)
}
