package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/userapi"
)

// pieces serves content in pieces of at most three bytes.
func (b *backend) pieces(content string) {
	b.mux.HandleFunc("GET "+userapi.RouteFileContent, func(w http.ResponseWriter, r *http.Request) {
		offset, err := strconv.Atoi(r.URL.Query().Get("offset"))
		if err != nil || r.URL.Query().Get("path") != "a file" || r.URL.Query().Get("root") != "1" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		err = json.NewEncoder(w).Encode(userapi.FileContent{
			Content: []byte(content[offset:min(offset+3, len(content))]), Offset: int64(offset), Size: int64(len(content)),
		})
		if err != nil {
			panic(err)
		}
	})
}

// A file is printed as it is, however many pieces it takes.
func TestReadingAFile(t *testing.T) {
	for _, content := range []string{"", "abc", "\x00\xffabcdefgh"} {
		b := newBackend(t)
		b.pieces(content)
		code, out, errOut := run(t, homeOf(t, b), "session", "files", "read", "s1", "a file", "--root", "1")
		require.Zero(t, code, errOut)
		require.Equal(t, content, out)
	}
}

func TestLookingAtAWorkspace(t *testing.T) {
	b := newBackend(t)
	at := time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC)
	b.answer("GET "+userapi.RouteFiles, userapi.Directory{
		Entries: []userapi.DirectoryEntry{{Name: "a\x1b[2Jfile", Kind: "file", Size: 12, ModifiedAt: at}}, Truncated: true,
	})
	b.answer("GET "+userapi.RouteGitStatus, userapi.GitStatus{
		Branch: "topic", Changes: []userapi.GitChange{{Path: "to", From: "from", Index: "R", Worktree: "."}}, Truncated: true,
	})
	b.answer("GET "+userapi.RouteGitDiff, userapi.GitDiff{Patch: []byte("diff --git \xff\n"), Truncated: true})
	b.answer("GET "+userapi.RouteGitLog, userapi.GitLog{Commits: []userapi.GitCommit{
		{ID: "0123456789abcdef", Author: "An Author", Subject: "the subject", At: at},
	}})
	dir := homeOf(t, b)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"files", "list", "s1", "dir"}, []string{`file  12`, `"a\x1b[2Jfile"`, "more entries"}},
		{[]string{"files", "list", "s1", "--json"}, []string{`"size": 12`}},
		{[]string{"git", "status", "s1"}, []string{"branch topic, commit none", `R. "to", before "from"`, "more changes"}},
		{[]string{"git", "diff", "s1", "--staged"}, []string{"diff --git \xff\n"}},
		{[]string{"git", "log", "s1", "dir", "--limit", "1"}, []string{"0123456789ab", "An Author", "the subject"}},
	} {
		code, out, errOut := run(t, dir, append([]string{"session"}, c.args...)...)
		require.Zero(t, code, errOut)
		for _, want := range c.want {
			require.Contains(t, out, want, c.args)
		}
		if c.args[1] == "diff" {
			require.Contains(t, errOut, "not complete")
		}
	}
}

// What is written comes from a file or from standard input, and is bounded
// before it is sent.
func TestWritingAFile(t *testing.T) {
	b := newBackend(t)
	b.answer("PUT "+userapi.RouteFileContent, userapi.WrittenFile{SHA256: "sum"})
	dir := homeOf(t, b)
	from := filepath.Join(t.TempDir(), "from")
	for content, want := range map[string]string{
		"hello": `PUT /api/v1/sessions/s1/files/content {"path":"to","content":"aGVsbG8=","expect":"absent"}`,
		"":      `PUT /api/v1/sessions/s1/files/content {"path":"to","content":"","expect":"absent"}`,
	} {
		require.NoError(t, os.WriteFile(from, []byte(content), 0o600))
		code, out, errOut := run(t, dir, "session", "files", "write", "s1", "to", "--from", from, "--expect", "absent")
		require.Zero(t, code, errOut)
		require.Equal(t, "sum\n", out)
		require.Equal(t, want, b.last())
	}
	require.NoError(t, os.Truncate(from, userapi.MaxFileContent+1))
	code, _, errOut := run(t, dir, "session", "files", "write", "s1", "to", "--from", from)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "smaller")
	code, _, errOut = run(t, dir, "session", "files", "write", "s1", "to", "--from", from+"-absent")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "absent")
}
