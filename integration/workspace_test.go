package integration

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/demo"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// S-002.5, S-002.3, S-002.14, S-001.2, S-001.7: the files of a session in a
// linked git work tree are reached through the public interface, before and
// after its backend was killed and the control server adopted; and no more of
// them after than before, although the backend's own copy of the roots then
// claims the whole host, and a root was replaced meanwhile.
func TestTheWorkspaceAfterAnAdoption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start().serving()
	d := w.desk()
	d.prompt("one", "stream until file go every 5ms")
	d.works()
	d.confined()
	content, err := w.backend.client.ReadFile(t.Context(), d.session, userapi.Place{Root: 1, Path: "file"}, 0, 0)
	require.NoError(t, err)
	require.Equal(t, "second", string(content.Content))

	before, err := demo.Fingerprint(d.tree)
	require.NoError(t, err)
	w.backend.kill()
	w.bend(`UPDATE task_sessions SET roots = '{/}' WHERE id = $1`, d.session)
	require.NoError(t, os.Rename(d.second, d.second+"-moved"))
	require.NoError(t, os.Symlink(d.outside, d.second))
	recovered := w.start().serving().status.Recovery
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 1}, recovered.Counts)
	after, err := demo.Fingerprint(d.tree)
	require.NoError(t, err)
	require.Equal(t, before, after)

	d.works()
	d.confined()
	_, err = w.backend.client.ReadFile(t.Context(), d.session, userapi.Place{Root: 1, Path: "file"}, 0, 0)
	d.refused(err)
	d.touch("go")
	d.ended("one")
	require.Equal(t, d.pid, d.view().Agent.PID)
	d.complete()
}

// desk is an agent in a linked work tree, with a second root, and with a
// directory beside them that is none.
type desk struct {
	*agent
	second, outside string
}

func (w *world) desk() *desk {
	w.t.Helper()
	repository := w.tree("repository")
	d := &desk{
		agent:  &agent{w: w, tree: filepath.Join(w.dir, "linked")},
		second: filepath.Join(w.dir, "second"), outside: filepath.Join(w.dir, "outside"),
	}
	for _, args := range [][]string{
		{"add", "--all"}, {"commit", "--quiet", "--message", "begin"},
		{"worktree", "add", "--quiet", "-b", "topic", d.tree},
	} {
		git := exec.Command("git", append([]string{"-C", repository, "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...)
		out, err := git.CombinedOutput()
		require.NoError(w.t, err, "%s", out)
	}
	for _, dir := range []string{d.second, d.outside} {
		require.NoError(w.t, os.Mkdir(dir, 0o700))
		require.NoError(w.t, os.WriteFile(filepath.Join(dir, "file"), []byte(filepath.Base(dir)), 0o600))
	}
	require.NoError(w.t, os.Symlink(d.outside, filepath.Join(d.tree, "link")))
	d.state, d.log = w.profile("desk")
	created, err := w.backend.client.CreateSession(w.t.Context(), userapi.CreateSession{
		ProfileID: "desk", Workspace: d.tree, Roots: []string{d.second},
	})
	require.NoError(w.t, err)
	d.session = created.ID
	d.ready()
	return d
}

// works checks that every operation does what it is for, while the agent works.
func (d *desk) works() {
	t, client, ctx := d.w.t, d.w.backend.client, d.w.t.Context()
	t.Helper()
	place := userapi.Place{Path: "work.txt"}
	read, err := client.ReadFile(ctx, d.session, place, 0, 0)
	require.NoError(t, err)
	next := append(read.Content, "more\n"...)
	_, err = client.WriteFile(ctx, d.session, userapi.WriteFile{Place: place, Content: next, Expect: read.SHA256})
	require.NoError(t, err)
	onDisk, err := os.ReadFile(filepath.Join(d.tree, "work.txt"))
	require.NoError(t, err)
	require.Equal(t, next, onDisk)

	listed, err := client.Files(ctx, d.session, userapi.Place{})
	require.NoError(t, err)
	kinds := map[string]string{}
	for _, e := range listed.Entries {
		kinds[e.Name] = e.Kind
	}
	require.Equal(t, map[string]string{".git": "file", "link": "link", "work.txt": "file"}, kinds)
	status, err := client.GitStatus(ctx, d.session, 0)
	require.NoError(t, err)
	require.Equal(t, "topic", status.Branch)
	require.Equal(t, []userapi.GitChange{
		{Path: "work.txt", Index: ".", Worktree: "M"}, {Path: "link", Index: "?", Worktree: "?"},
	}, status.Changes)
	diff, err := client.GitDiff(ctx, d.session, place, false)
	require.NoError(t, err)
	require.Contains(t, string(diff.Patch), "+more\n")
	log, err := client.GitLog(ctx, d.session, place, 0, 0)
	require.NoError(t, err)
	require.Len(t, log.Commits, 1)
	require.Equal(t, status.Commit, log.Commits[0].ID)
}

// confined checks that no operation reaches what is beside the roots.
func (d *desk) confined() {
	client, ctx := d.w.backend.client, d.w.t.Context()
	d.w.t.Helper()
	for _, place := range []userapi.Place{
		{Path: "link/file"}, {Path: "../outside/file"}, {Path: filepath.ToSlash(d.outside) + "/file"},
		{Root: 1, Path: "../outside/file"}, {Root: 2, Path: "file"}, {Root: -1, Path: "file"},
	} {
		_, err := client.ReadFile(ctx, d.session, place, 0, 0)
		d.refused(err)
		_, err = client.WriteFile(ctx, d.session, userapi.WriteFile{Place: place, Content: []byte("overwritten")})
		d.refused(err)
		_, err = client.Files(ctx, d.session, userapi.Place{Root: place.Root, Path: path.Dir(place.Path)})
		d.refused(err)
	}
	content, err := os.ReadFile(filepath.Join(d.outside, "file"))
	require.NoError(d.w.t, err)
	require.Equal(d.w.t, "outside", string(content))
}

func (d *desk) refused(err error) {
	d.w.t.Helper()
	var refusal *userapi.Error
	require.ErrorAs(d.w.t, err, &refusal)
	require.Equal(d.w.t, userapi.CodeOutsideWorkspace, refusal.Code, refusal.Message)
	require.NotContains(d.w.t, refusal.Message, d.w.dir)
}
