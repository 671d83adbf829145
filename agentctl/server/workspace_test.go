package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// S-002.5, S-002.14: the real client against the real handler, over every route
// of an instance's workspace. What may be reached are the roots that the
// instance was created with; a request cannot add to them.
func TestWorkspaceRoutes(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	ctx := t.Context()
	request := agentRequest(t, nil)
	request.Roots = append(request.Roots, t.TempDir())
	require.NoError(t, exec.Command("git", "init", "--quiet", request.Roots[0]).Run())
	const id = "i 1/ü"
	_, err := c.Create(ctx, id, request)
	require.NoError(t, err)

	place := wire.Place{Path: "a file & more?.txt"}
	written, err := c.WriteFile(ctx, id, wire.WriteFile{Place: place, Content: []byte("\x00\xffold")})
	require.NoError(t, err)
	require.True(t, written.Created)
	content, err := c.ReadFile(ctx, id, place, 2, 2)
	require.NoError(t, err)
	require.Equal(t, wire.FileContent{Content: []byte("ol"), Offset: 2, Size: 5}, content)
	content, err = c.ReadFile(ctx, id, place, 0, 0)
	require.NoError(t, err)
	require.Equal(t, written.SHA256, content.SHA256)
	_, err = c.WriteFile(ctx, id, wire.WriteFile{Place: place, Expect: wire.ExpectAbsent})
	requireCode(t, wire.CodeFileChanged, err)
	_, err = c.WriteFile(ctx, id, wire.WriteFile{Place: place, Expect: written.SHA256})
	require.NoError(t, err, "no content is an empty file")

	listed, err := c.ListFiles(ctx, id, wire.Place{Root: 1})
	require.NoError(t, err)
	require.Equal(t, wire.Directory{Entries: []wire.DirectoryEntry{}}, listed)
	status, err := c.GitStatus(ctx, id, 0)
	require.NoError(t, err)
	require.Equal(t, []wire.GitChange{{Path: place.Path, Index: "?", Worktree: "?"}}, status.Changes)
	_, err = c.GitStatus(ctx, id, 1)
	requireCode(t, wire.CodeNoRepository, err)
	require.NoError(t, exec.Command("git", "-C", request.Roots[0], "add", "--all").Run())
	diff, err := c.GitDiff(ctx, id, place, true)
	require.NoError(t, err)
	require.Contains(t, string(diff.Patch), "new file")
	diff, err = c.GitDiff(ctx, id, place, false)
	require.NoError(t, err)
	require.Empty(t, diff.Patch)
	log, err := c.GitLog(ctx, id, wire.Place{}, 0, 1)
	require.NoError(t, err)
	require.Empty(t, log.Commits)

	_, err = c.ReadFile(ctx, id, wire.Place{Path: "../x"}, 0, 0)
	requireCode(t, wire.CodeOutsideWorkspace, err)
	_, err = c.ReadFile(ctx, id, wire.Place{Root: 2}, 0, 0)
	requireCode(t, wire.CodeOutsideWorkspace, err)
	_, err = c.ReadFile(ctx, "another", place, 0, 0)
	requireCode(t, wire.CodeNotFound, err)
	_, err = c.WriteFile(ctx, "another", wire.WriteFile{Place: place})
	requireCode(t, wire.CodeNotFound, err)

	_, err = c.Stop(ctx, id, 0)
	require.NoError(t, err)
	_, err = c.ReadFile(ctx, id, place, 0, 0)
	requireCode(t, wire.CodeNotFound, err)
}

// S-002.5: the roots of an instance stay the directories that they were.
func TestARootThatWasReplacedIsNotServed(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	request := agentRequest(t, nil)
	second := filepath.Join(t.TempDir(), "second")
	require.NoError(t, os.Mkdir(second, 0o700))
	request.Roots = append(request.Roots, second)
	_, err := c.Create(t.Context(), "i", request)
	require.NoError(t, err)
	require.NoError(t, os.Rename(second, second+"-moved"))
	require.NoError(t, os.Symlink(t.TempDir(), second))
	_, err = c.ListFiles(t.Context(), "i", wire.Place{Root: 1})
	requireCode(t, wire.CodeOutsideWorkspace, err)
}

// A parameter that cannot be used is refused, instead of being left out.
func TestBadWorkspaceRequests(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	_, token := r.own(t)
	raw := rawHTTP(t, r)
	for _, query := range []string{"root=x", "offset=1.5", "limit=", "skip=99999999999999999999", "staged=maybe"} {
		require.Equal(t, wire.CodeBadRequest, raw.send(t, "GET "+wire.RouteFiles+"?"+query, "Bearer "+token, ""), query)
	}
	for _, body := range []string{"", "null", "{}", `{"path":"x"}`, `{"path":"x","content":null}`, `{"path":"x","content":"%"}`} {
		require.Equal(t, wire.CodeBadRequest, raw.send(t, "PUT "+wire.RouteFileContent, "Bearer "+token, body), body)
	}
}
