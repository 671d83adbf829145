package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// emptyBlob is the object of an empty file.
const emptyBlob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

// gitInput runs git with a file as its input.
func gitInput(t *testing.T, dir, input string, args ...string) {
	t.Helper()
	file, err := os.Open(input)
	require.NoError(t, err)
	defer file.Close()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, file
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// committed makes a repository with one commit of the files.
func committed(t *testing.T, dir string, files ...string) {
	t.Helper()
	git(t, dir, "init")
	for _, name := range files {
		put(t, filepath.Join(dir, name), "content of "+name+"\n")
	}
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--allow-empty", "--message", "the first")
}

func changes(t *testing.T, g ground) map[string]string {
	t.Helper()
	status, err := g.Status(t.Context(), 0)
	require.NoError(t, err)
	found := map[string]string{}
	for _, c := range status.Changes {
		found[c.Path] = c.Index + c.Worktree + c.From
	}
	return found
}

// Status, diff and log tell what git itself does.
func TestGit(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	git(t, g.root, "init")
	status, err := g.Status(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, wire.GitStatus{Branch: "main", Changes: []wire.GitChange{}}, status)
	log, err := g.Log(t.Context(), in(""), 0, 0)
	require.NoError(t, err)
	require.Equal(t, wire.GitLog{Commits: []wire.GitCommit{}}, log)

	committed(t, g.root, "kept", "changed", "removed", "moved from", "ünï\tcode")
	put(t, g.at("changed"), "changed\x00\xff\n")
	put(t, g.at("ünï\tcode"), "changed too\n")
	put(t, g.at("staged"), "staged\n")
	put(t, g.at("new/inner"), "new\n")
	require.NoError(t, os.Remove(g.at("removed")))
	git(t, g.root, "add", "staged")
	git(t, g.root, "mv", "moved from", "moved to")
	require.Equal(t, map[string]string{
		"changed": ".M", "ünï\tcode": ".M", "removed": ".D", "staged": "A.", "moved to": "R.moved from", "new/": "??",
	}, changes(t, g))

	diff, err := g.Diff(t.Context(), in(""), false)
	require.NoError(t, err)
	require.Contains(t, string(diff.Patch), "+changed too\n")
	require.NotContains(t, string(diff.Patch), "+staged\n")
	diff, err = g.Diff(t.Context(), in("removed"), false)
	require.NoError(t, err)
	require.Contains(t, string(diff.Patch), "-content of removed\n")
	require.NotContains(t, string(diff.Patch), "changed too")
	diff, err = g.Diff(t.Context(), in(""), true)
	require.NoError(t, err)
	require.Contains(t, string(diff.Patch), "+staged\n")
	require.NotContains(t, string(diff.Patch), "changed too")

	git(t, g.root, "commit", "--all", "--message", "the second: ünïcode", "--date", "2024-02-03T04:05:06Z")
	log, err = g.Log(t.Context(), in(""), 0, 0)
	require.NoError(t, err)
	require.Len(t, log.Commits, 2)
	require.Equal(t, wire.GitCommit{
		ID: log.Commits[0].ID, Parents: []string{log.Commits[1].ID}, Author: "An Author", Email: "author@example.org",
		At: time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC), Subject: "the second: ünïcode",
	}, log.Commits[0])
	skipped, err := g.Log(t.Context(), in(""), 1, 5)
	require.NoError(t, err)
	require.Equal(t, log.Commits[1:], skipped.Commits)
	narrowed, err := g.Log(t.Context(), in("kept"), 0, 1)
	require.NoError(t, err)
	require.Equal(t, log.Commits[1:], narrowed.Commits)
	status, err = g.Status(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, log.Commits[0].ID, status.Commit)
	git(t, g.root, "checkout", "--detach")
	status, err = g.Status(t.Context(), 0)
	require.NoError(t, err)
	require.Empty(t, status.Branch)
	for _, bad := range [][2]int64{{-1, 0}, {0, -1}, {0, wire.MaxGitCommits + 1}} {
		_, err = g.Log(t.Context(), in(""), bad[0], bad[1])
		requireCode(t, wire.CodeBadRequest, err)
	}
}

// A path is a path, whatever it looks like to git.
func TestPathsAreLiteral(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	committed(t, g.root, "--output=x", ":(top)", "a*", "ab")
	for _, name := range []string{"--output=x", ":(top)", "a*", "ab"} {
		put(t, g.at(name), "now "+name+"\n")
	}
	for _, name := range []string{"--output=x", ":(top)", "a*"} {
		diff, err := g.Diff(t.Context(), in(name), false)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(diff.Patch), "+now "), name)
		require.Contains(t, string(diff.Patch), "+now "+name+"\n")
	}
	require.NoFileExists(t, g.at("x"))
}

// S-002.5: a linked work tree works, while its repository lies outside the root
// and stays out of reach of everything else.
func TestALinkedWorkTree(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	repository := filepath.Join(filepath.Dir(g.root), "repository")
	require.NoError(t, os.Mkdir(repository, 0o700))
	committed(t, repository, "file")
	tree := filepath.Join(filepath.Dir(g.root), "tree")
	git(t, repository, "worktree", "add", "-b", "topic", tree)
	put(t, filepath.Join(tree, "file"), "changed in the tree\n")
	put(t, filepath.Join(repository, "file"), "changed in the repository\n")
	g.root, g.Workspace = tree, open(t, tree)

	status, err := g.Status(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, "topic", status.Branch)
	require.Equal(t, []wire.GitChange{{Path: "file", Index: ".", Worktree: "M"}}, status.Changes)
	diff, err := g.Diff(t.Context(), in(""), false)
	require.NoError(t, err)
	require.Contains(t, string(diff.Patch), "+changed in the tree\n")
	require.NotContains(t, string(diff.Patch), "repository")
	log, err := g.Log(t.Context(), in("file"), 0, 0)
	require.NoError(t, err)
	require.Len(t, log.Commits, 1)
	_, err = g.Read(in("../repository/file"), 0, 0)
	requireCode(t, wire.CodeOutsideWorkspace, err)

	// Newer gits may write both ends of the link as relative paths.
	record := filepath.Join(repository, ".git", "worktrees", "tree")
	put(t, filepath.Join(tree, ".git"), "gitdir: ../repository/.git/worktrees/tree\n")
	put(t, filepath.Join(record, "gitdir"), "../../../../tree/.git\n")
	status, err = g.Status(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, status.Changes, 1)
}

// S-002.5: what is written below the root cannot make git tell what another
// repository or another directory holds.
func TestRepositoriesThatLeadOut(t *testing.T) {
	t.Parallel()
	for what, build := range map[string]struct {
		code wire.Code
		make func(t *testing.T, g ground, other string)
	}{
		"no repository": {wire.CodeNoRepository, func(*testing.T, ground, string) {}},
		"below a repository": {wire.CodeNoRepository, func(t *testing.T, g ground, _ string) {
			committed(t, filepath.Dir(g.root), "upper")
		}},
		"linked .git": {wire.CodeOutsideWorkspace, func(t *testing.T, g ground, other string) {
			link(t, other, g.at(".git"))
		}},
		".git file of another repository": {wire.CodeOutsideWorkspace, func(t *testing.T, g ground, other string) {
			put(t, g.at(".git"), "gitdir: "+other+"\n")
		}},
		".git file of another work tree": {wire.CodeOutsideWorkspace, func(t *testing.T, g ground, other string) {
			git(t, filepath.Dir(other), "worktree", "add", filepath.Join(g.outside, "tree"))
			put(t, g.at(".git"), "gitdir: "+filepath.Join(other, "worktrees", "tree")+"\n")
		}},
		"work tree record of our own making": {wire.CodeOutsideWorkspace, func(t *testing.T, g ground, other string) {
			put(t, g.at("fake/gitdir"), g.at(".git")+"\n")
			put(t, g.at("fake/commondir"), other+"\n")
			put(t, g.at("fake/HEAD"), "ref: refs/heads/main\n")
			put(t, g.at(".git"), "gitdir: "+g.at("fake")+"\n")
		}},
		".git directory of another repository": {wire.CodeOutsideWorkspace, func(t *testing.T, g ground, other string) {
			git(t, g.root, "init")
			put(t, g.at(".git/commondir"), other+"\n")
		}},
		"work tree of another repository": {wire.CodeOutsideWorkspace, func(t *testing.T, g ground, other string) {
			put(t, g.at("fake/worktrees/tree/gitdir"), g.at(".git")+"\n")
			put(t, g.at("fake/worktrees/tree/commondir"), other+"\n")
			put(t, g.at("fake/worktrees/tree/HEAD"), "ref: refs/heads/main\n")
			put(t, g.at(".git"), "gitdir: fake/worktrees/tree\n")
		}},
		"linked objects": {wire.CodeOutsideWorkspace, func(t *testing.T, g ground, other string) {
			git(t, g.root, "init")
			require.NoError(t, os.RemoveAll(g.at(".git/objects")))
			link(t, filepath.Join(other, "objects"), g.at(".git/objects"))
		}},
		"borrowed objects": {wire.CodeOutsideWorkspace, func(t *testing.T, g ground, other string) {
			git(t, g.root, "clone", "--shared", filepath.Dir(other), ".")
		}},
		"no text": {wire.CodeNoRepository, func(t *testing.T, g ground, _ string) {
			put(t, g.at(".git"), strings.Repeat("x", 100_000))
		}},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGround(t)
			committed(t, g.outside, "private")
			build.make(t, g, filepath.Join(g.outside, ".git"))
			_, err := g.Status(t.Context(), 0)
			requireCode(t, build.code, err)
			_, err = g.Diff(t.Context(), in(""), false)
			requireCode(t, build.code, err)
			_, err = g.Log(t.Context(), in(""), 0, 0)
			requireCode(t, build.code, err)
		})
	}
}

// S-002.5: settings and files of the repository that name another work tree or
// another repository have no effect.
func TestSettingsThatLeadOut(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	committed(t, g.root, "inside")
	committed(t, g.outside, "private")
	git(t, g.root, "config", "core.worktree", g.outside)
	require.Empty(t, changes(t, g))
	git(t, g.root, "config", "include.path", filepath.Join(g.outside, "private"))
	_, err := g.Status(t.Context(), 0)
	requireCode(t, wire.CodeGitFailed, err, "it is not a configuration file")
	require.NotContains(t, err.Error(), "private")
}

// Answers are bounded, and say that they are.
func TestGitIsBounded(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	committed(t, g.root, "large")
	put(t, g.at("large"), strings.Repeat("a line of a large file\n", wire.MaxGitDiff/20))
	diff, err := g.Diff(t.Context(), in(""), false)
	require.NoError(t, err)
	require.Len(t, diff.Patch, wire.MaxGitDiff)
	require.True(t, diff.Truncated)
	git(t, g.root, "commit", "--all", "--message", "large")
	diff, err = g.Diff(t.Context(), in(""), false)
	require.NoError(t, err)
	require.Equal(t, wire.GitDiff{Patch: []byte{}}, diff)

	var index strings.Builder // without making the files: they are missing then
	for n := range wire.MaxGitChanges + 1 {
		fmt.Fprintf(&index, "100644 %s\tmissing/%d\n", emptyBlob, n)
	}
	put(t, filepath.Join(g.outside, "index"), index.String())
	gitInput(t, g.root, filepath.Join(g.outside, "index"), "update-index", "--index-info")
	status, err := g.Status(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, status.Changes, wire.MaxGitChanges)
	require.True(t, status.Truncated)
}
