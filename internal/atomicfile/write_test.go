package atomicfile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/atomicfile"
)

// A file is replaced whole, is its owner's alone, and leaves nothing beside it,
// also when it cannot be put in place.
func TestWriteReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, content := range []string{"first, and longer", "second"} {
		require.NoError(t, atomicfile.Write(path, []byte(content)))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(got))
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	taken := filepath.Join(dir, "taken")
	require.NoError(t, os.MkdirAll(filepath.Join(taken, "inside"), 0o700))
	require.Error(t, atomicfile.Write(taken, nil))
	names(t, dir, "file", "taken")
	require.NoError(t, atomicfile.Remove(path))
	require.NoError(t, atomicfile.Remove(path), "absent already")
	require.Error(t, atomicfile.Remove(taken))
	names(t, dir, "taken")
}

func names(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	require.Equal(t, want, got)
}
