package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/userapi"
)

// S-002.5: a user reaches the files of a session's agent, through its control
// server, and nothing else.
func TestFiles(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	root, second := t.TempDir(), t.TempDir()
	require.NoError(t, exec.Command("git", "init", "--quiet", "--initial-branch", "main", root).Run())
	agent.Serve(t, root, second)
	ctx := t.Context()

	place := userapi.Place{Path: "dir/a file.txt"}
	_, err := b.WriteFile(ctx, id, userapi.WriteFile{Place: place, Content: []byte("x")})
	refused(t, userapi.CodeNotFound, err)
	require.NoError(t, os.Mkdir(filepath.Join(root, "dir"), 0o700))
	large := strings.Repeat("\x00\xff", userapi.MaxFileContent/2)
	written, err := b.WriteFile(ctx, id, userapi.WriteFile{Place: place, Content: []byte(large), Expect: userapi.ExpectAbsent})
	require.NoError(t, err)
	require.True(t, written.Created)
	content, err := b.ReadFile(ctx, id, place, 0, 0)
	require.NoError(t, err)
	require.Equal(t, large, string(content.Content))
	require.Equal(t, written.SHA256, content.SHA256)
	content, err = b.ReadFile(ctx, id, place, 1, 2)
	require.NoError(t, err)
	require.Equal(t, userapi.FileContent{Content: []byte("\xff\x00"), Offset: 1, Size: int64(len(large))}, content)
	_, err = b.WriteFile(ctx, id, userapi.WriteFile{Place: place, Expect: userapi.ExpectAbsent})
	refused(t, userapi.CodeConflict, err)

	listed, err := b.Files(ctx, id, userapi.Place{Path: "dir"})
	require.NoError(t, err)
	require.Len(t, listed.Entries, 1)
	require.Equal(t, "a file.txt", listed.Entries[0].Name)
	require.Equal(t, "file", listed.Entries[0].Kind)
	require.Equal(t, int64(len(large)), listed.Entries[0].Size)
	require.NotZero(t, listed.Entries[0].ModifiedAt)
	listed, err = b.Files(ctx, id, userapi.Place{Root: 1})
	require.NoError(t, err)
	require.Empty(t, listed.Entries)

	status, err := b.GitStatus(ctx, id, 0)
	require.NoError(t, err)
	require.Equal(t, userapi.GitStatus{
		Branch: "main", Changes: []userapi.GitChange{{Path: "dir/", Index: "?", Worktree: "?"}},
	}, status)
	require.NoError(t, exec.Command("git", "-C", root, "add", "--all").Run())
	diff, err := b.GitDiff(ctx, id, userapi.Place{}, true)
	require.NoError(t, err)
	require.Contains(t, string(diff.Patch), "new file")
	log, err := b.GitLog(ctx, id, userapi.Place{}, 0, 5)
	require.NoError(t, err)
	require.Empty(t, log.Commits)
	commit := exec.Command("git", "-C", root, "-c", "user.name=A", "-c", "user.email=b", "commit", "--quiet", "--message", "one")
	require.NoError(t, commit.Run())
	log, err = b.GitLog(ctx, id, userapi.Place{}, 0, 5)
	require.NoError(t, err)
	require.Len(t, log.Commits, 1)
	require.Equal(t, "one", log.Commits[0].Subject)
}

// Every refusal of the workspace has its own code; a client decides by it.
func TestFilesRefused(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	ctx := t.Context()
	_, err := b.ReadFile(ctx, id, userapi.Place{Path: "x"}, 0, 0)
	refused(t, userapi.CodeOutsideWorkspace, err)

	root := t.TempDir()
	agent.Serve(t, root)
	for path, code := range map[string]userapi.Code{
		"../x": userapi.CodeOutsideWorkspace, "absent": userapi.CodeNotFound, "": userapi.CodeInvalid,
	} {
		_, err = b.ReadFile(ctx, id, userapi.Place{Path: path}, 0, 0)
		refusal := refused(t, code, err)
		require.False(t, refusal.Retryable)
		require.NotContains(t, refusal.Message, root)
	}
	_, err = b.GitStatus(ctx, id, 0)
	refused(t, userapi.CodeInvalid, err)
	_, err = b.WriteFile(ctx, id, userapi.WriteFile{
		Place: userapi.Place{Path: "x"}, Content: make([]byte, userapi.MaxFileContent+1),
	})
	refused(t, userapi.CodeInvalid, err)
	_, err = b.Files(ctx, "another", userapi.Place{})
	refused(t, userapi.CodeNotFound, err)
	created := b.create(t)
	_, err = b.Files(ctx, created.ID, userapi.Place{})
	refused(t, userapi.CodeNoAgent, err)

	files := "/api/v1/sessions/" + id + "/files"
	for _, query := range []string{"?root=x", "?depth=2", "?limit=", "?staged=2"} {
		status, code := b.request(t, http.MethodGet, files+query, "", nil)
		require.Equal(t, 400, status, query)
		require.Equal(t, userapi.CodeBadRequest, code, query)
	}
	for body, want := range map[string]int{"{": 400, `{"path":"x","contents":""}`: 400, `{"path":"x"}`: 422} {
		status, _ := b.request(t, http.MethodPut, files+"/content", body, nil)
		require.Equal(t, want, status, body)
	}
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// S-002.5: a body that names roots is refused: they are not a request's to give.
func TestRootsCannotBePushed(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	agent.Serve(t, t.TempDir())
	body, err := json.Marshal(map[string]any{"path": "file", "content": "", "roots": []string{t.TempDir()}})
	require.NoError(t, err)
	status, code := b.request(t, http.MethodPut, "/api/v1/sessions/"+id+"/files/content", string(body), nil)
	require.Equal(t, 400, status)
	require.Equal(t, userapi.CodeBadRequest, code)
}
