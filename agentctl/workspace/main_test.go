package workspace_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/agentctl/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline bounds what must not wait.
const deadline = 40 * time.Second

const secret = "what lies outside"

// ground is a workspace with one root, and a directory beside it that must stay
// out of reach.
type ground struct {
	*workspace.Workspace
	root, outside string
}

func newGround(t *testing.T) ground {
	t.Helper()
	dir := t.TempDir()
	g := ground{root: filepath.Join(dir, "root"), outside: filepath.Join(dir, "outside")}
	for _, d := range []string{g.root, g.outside} {
		require.NoError(t, os.Mkdir(d, 0o700))
	}
	put(t, filepath.Join(g.outside, "file"), secret)
	g.Workspace = open(t, g.root)
	return g
}

func open(t *testing.T, roots ...string) *workspace.Workspace {
	t.Helper()
	w, err := workspace.Open(roots)
	require.NoError(t, err)
	return w
}

// at is a path below the root, as the test reaches it.
func (g ground) at(path string) string { return filepath.Join(g.root, filepath.FromSlash(path)) }

// put makes a file and the directories that it needs.
func put(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func link(t *testing.T, target, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.Symlink(target, path))
}

// in names a place of the first root.
func in(path string) wire.Place { return wire.Place{Path: path} }

func write(path, content string) wire.WriteFile {
	return wire.WriteFile{Place: in(path), Content: []byte(content)}
}

func requireCode(t *testing.T, want wire.Code, err error, what ...any) {
	t.Helper()
	var refusal *wire.Error
	require.True(t, errors.As(err, &refusal), "%v %v", err, what)
	require.Equal(t, want, refusal.Code, what...)
}

// soon fails the test if do waits.
func soon(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(deadline):
		t.Fatal("it waits")
	}
}

// git runs the real git, as an agent would.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=An Author", "-c", "user.email=author@example.org", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
}
