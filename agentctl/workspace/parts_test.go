package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// What the operating system answers is told by its code; the rest keeps its
// cause and loses its path.
func TestRefusals(t *testing.T) {
	dir, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	for cause, want := range map[error]wire.Code{
		syscall.EACCES: wire.CodeFileDenied, syscall.EPERM: wire.CodeFileDenied, syscall.EROFS: wire.CodeFileDenied,
		syscall.ETXTBSY: wire.CodeFileDenied, syscall.ENOENT: wire.CodeNoSuchFile, syscall.ENOTDIR: wire.CodeWrongKind,
		syscall.ELOOP: wire.CodeWrongKind, syscall.ENAMETOOLONG: wire.CodeBadRequest,
	} {
		require.ErrorIs(t, refusal(dir, &fs.PathError{Op: "open", Path: "/the/host", Err: cause}), &wire.Error{Code: want}, cause)
	}
	for _, err := range []error{
		&fs.PathError{Op: "open", Path: "/the/host", Err: syscall.EIO},
		&os.LinkError{Op: "rename", Old: "/the/host", New: "/the/host", Err: syscall.EIO},
	} {
		require.Equal(t, syscall.EIO, refusal(dir, err))
	}
	require.NoError(t, refusal(dir, nil))
}

// Records of git that were cut are left out; others that cannot be read are an
// error, not an empty answer.
func TestParsing(t *testing.T) {
	const whole = "# branch.oid (initial)\x00# branch.head main\x00? new\x00"
	const renamed = "2 R. N... 100644 100644 100644 a b R100 to\x00from\x00"
	status, err := parseStatus([]byte(whole+renamed), false)
	require.NoError(t, err)
	require.Equal(t, wire.GitStatus{Branch: "main", Changes: []wire.GitChange{
		{Path: "new", Index: "?", Worktree: "?"}, {Path: "to", From: "from", Index: "R", Worktree: "."},
	}}, status)
	for cut := 1; cut < len(renamed); cut++ {
		status, err := parseStatus([]byte((whole + renamed)[:len(whole)+cut]), true)
		require.NoError(t, err)
		require.True(t, status.Truncated)
		require.Len(t, status.Changes, 1)
	}
	for _, bad := range []string{"1 M. short\x00", "x y\x00", "2 R. N... 1 2 3 a b R100 to\x00", "\x00"} {
		_, err := parseStatus([]byte(bad), false)
		require.ErrorIs(t, err, &wire.Error{Code: wire.CodeGitFailed}, "%q", bad)
	}

	const commit = "id\n\nname\nmail\n1700000000\nsubject"
	log, err := parseLog(commit+"\x00"+commit[:9], true)
	require.NoError(t, err)
	require.Len(t, log.Commits, 1)
	for _, bad := range []string{commit, "id\x00"} {
		_, err := parseLog(bad, false)
		require.ErrorIs(t, err, &wire.Error{Code: wire.CodeGitFailed})
	}
	for _, seconds := range []string{"", "9223372036854775807", "x"} {
		log, err = parseLog("id\n\nname\nmail\n"+seconds+"\nsubject\x00", false)
		require.NoError(t, err)
		require.Zero(t, log.Commits[0].At)
	}
}

// A file can have a time that no answer can hold.
func TestTimes(t *testing.T) {
	at := time.Date(2024, 2, 3, 4, 5, 6, 7, time.FixedZone("", 3600))
	require.Equal(t, at.UTC(), writable(at))
	for _, year := range []int{0, 10_000, 292_277_026_596} {
		require.Zero(t, writable(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)))
	}
}

func TestNamesAreBounded(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"c", "a", "b"} {
		require.NoError(t, os.Mkdir(filepath.Join(path, name), 0o700))
	}
	dir, err := os.OpenRoot(path)
	require.NoError(t, err)
	defer dir.Close()
	found, truncated, err := names(dir, 2)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.True(t, truncated)
	found, truncated, err = names(dir, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, found)
	require.False(t, truncated)
}
