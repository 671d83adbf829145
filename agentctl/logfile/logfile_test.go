package logfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// S-001.3: the log lies under the home directory, only its owner reads it, and
// it rotates at a fixed size.
func TestLogIsPrivateAndRotates(t *testing.T) {
	home := t.TempDir()
	log, err := Open(Path(home, ""))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })

	line := strings.Repeat("x", 1<<20)
	for range MaxMegabytes + 1 {
		log.Logger.Info("entry", zap.String("filler", line))
	}

	require.Equal(t, filepath.Join(home, "logs", "agentctl.log"), Path(home, ""))
	entries, err := os.ReadDir(filepath.Dir(Path(home, "")))
	require.NoError(t, err)
	require.Len(t, entries, 2, "one file and one that was rotated away")
	for _, entry := range entries {
		info, err := entry.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.LessOrEqual(t, info.Size(), int64(MaxMegabytes<<20))
	}
}

// S-001.3: the bounds are those of the contract.
func TestFixedBounds(t *testing.T) {
	log, err := Open(Path(t.TempDir(), ""))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	require.Equal(t, []int{16, 10, 14}, []int{log.file.MaxSize, log.file.MaxBackups, log.file.MaxAge})
}

// A log that was readable by others is not afterwards.
func TestOpenRestrictsAnExistingFile(t *testing.T) {
	path := Path(t.TempDir(), "")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("earlier\n"), 0o644))

	log, err := Open(path)
	require.NoError(t, err)
	log.Logger.Info("later")
	require.NoError(t, log.Close())

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(content), "earlier\n"), "appended to")
	require.Contains(t, string(content), "later")
}
