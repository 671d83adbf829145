//go:build unix

package workspace_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// program makes a script that leaves a mark, and returns it with the mark.
func program(t *testing.T, g ground, name string) (script, mark string) {
	t.Helper()
	script, mark = filepath.Join(g.outside, name), filepath.Join(g.outside, name+"-ran")
	put(t, script, "#!/bin/sh\ntouch '"+mark+"'\ncat\n")
	require.NoError(t, os.Chmod(script, 0o700))
	return script, mark
}

// everything asks git for all that can be asked.
func everything(t *testing.T, g ground) {
	t.Helper()
	_, err := g.Status(t.Context(), 0)
	require.NoError(t, err)
	for _, staged := range []bool{true, false} {
		_, err = g.Diff(t.Context(), in(""), staged)
		require.NoError(t, err)
	}
	_, err = g.Log(t.Context(), in(""), 0, 0)
	require.NoError(t, err)
}

// No program that a configuration, an attribute or the environment names is
// started; each of them is, by a git that is asked without our precautions.
func TestGitStartsNoProgram(t *testing.T) {
	t.Parallel()
	const attributes = "* filter=a.filter diff=driver\n"
	for what, c := range map[string]struct {
		key  []string // with the script as their value
		more [][2]string
		ask  []string
	}{
		"filter":          {key: []string{"filter.a.filter.clean"}, ask: []string{"diff"}},
		"filter process":  {key: []string{"filter.a.filter.process"}, more: [][2]string{{"filter.a.filter.required", "true"}}, ask: []string{"diff"}},
		"external diff":   {key: []string{"diff.external"}, ask: []string{"diff"}},
		"diff driver":     {key: []string{"diff.driver.command"}, ask: []string{"diff"}},
		"text conversion": {key: []string{"diff.driver.textconv"}, ask: []string{"diff"}},
		"fsmonitor":       {key: []string{"core.fsmonitor"}, ask: []string{"status"}},
		"pager":           {key: []string{"core.pager", "pager.diff", "pager.status", "pager.log"}, ask: []string{"--paginate", "status"}},
		"signatures":      {key: []string{"gpg.program"}, more: [][2]string{{"log.showSignature", "true"}}, ask: []string{"log"}},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGround(t)
			committed(t, g.root, "file")
			signed(t, g)
			put(t, g.at(".gitattributes"), attributes)
			put(t, g.at("file"), "changed\n")
			script, mark := program(t, g, "program")
			for _, key := range c.key {
				git(t, g.root, "config", key, script)
			}
			for _, pair := range c.more {
				git(t, g.root, "config", pair[0], pair[1])
			}
			everything(t, g)
			require.NoFileExists(t, mark)

			naive := exec.Command("git", c.ask...)
			naive.Dir, naive.Env = g.root, append(os.Environ(), "TERM=dumb")
			out, err := naive.CombinedOutput()
			if what != "pager" { // used on a terminal only
				require.FileExists(t, mark, "%v %s: this test proves nothing", err, out)
			}
		})
	}
}

// signed adds a commit with something in the place of a signature.
func signed(t *testing.T, g ground) {
	t.Helper()
	tree, err := output(g.root, "git", "write-tree")
	require.NoError(t, err)
	const who = "An Author <author@example.org> 1700000000 +0000\n"
	put(t, filepath.Join(g.outside, "commit"), "tree "+tree+"\nauthor "+who+"committer "+who+
		"gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n")
	commit, err := output(g.root, "git", "hash-object", "-t", "commit", "-w", "--literally", filepath.Join(g.outside, "commit"))
	require.NoError(t, err)
	git(t, g.root, "reset", "--soft", commit)
}

func output(dir string, command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.Output()
	return string(out[:max(len(out)-1, 0)]), err
}

// Nothing of the control server's own environment and of the user's settings
// reaches git, and hooks do not run.
func TestGitHasItsOwnEnvironment(t *testing.T) {
	g := newGround(t)
	committed(t, g.root, "file")
	committed(t, g.outside, "private")
	put(t, g.at("file"), "changed\n")
	script, mark := program(t, g, "program")
	settings := filepath.Join(g.outside, "settings")
	put(t, settings, "[diff]\n\texternal = "+script+"\n[core]\n\tfsmonitor = "+script+"\n")
	t.Setenv("HOME", g.outside)
	t.Setenv("GIT_CONFIG_GLOBAL", settings)
	t.Setenv("GIT_CONFIG_SYSTEM", settings)
	t.Setenv("GIT_EXTERNAL_DIFF", script)
	t.Setenv("GIT_DIR", filepath.Join(g.outside, ".git"))
	t.Setenv("GIT_WORK_TREE", g.outside)
	t.Setenv("GIT_TRACE", mark)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(g.outside, ".git", "index"))
	everything(t, g)
	require.Equal(t, map[string]string{"file": ".M"}, changes(t, g))
	require.NoFileExists(t, mark)
}

// Looking changes nothing: no index is written, and no lock is needed.
func TestGitOnlyLooks(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	committed(t, g.root, "file")
	script, mark := program(t, g, "post-index-change")
	require.NoError(t, os.MkdirAll(g.at(".git/hooks"), 0o700))
	require.NoError(t, os.Rename(script, g.at(".git/hooks/post-index-change")))
	// Touched and not changed: a git that may write would note that in its index.
	require.NoError(t, os.Chtimes(g.at("file"), time.Now(), time.Now().Add(-time.Hour)))
	before, err := os.ReadFile(g.at(".git/index"))
	require.NoError(t, err)
	everything(t, g)
	after, err := os.ReadFile(g.at(".git/index"))
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoFileExists(t, mark)
	diff, err := g.Diff(t.Context(), in(""), false)
	require.NoError(t, err)
	require.Empty(t, diff.Patch, "a touched file is not a changed one")
	put(t, g.at(".git/index.lock"), "")
	everything(t, g)
}

// A tracked file that became a pipe makes git wait as little as us; git has no
// patch for it.
func TestGitDoesNotWaitForPipes(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	committed(t, g.root, "file")
	require.NoError(t, os.Remove(g.at("file")))
	require.NoError(t, exec.Command("mkfifo", g.at("file")).Run())
	soon(t, func() {
		require.Equal(t, map[string]string{"file": ".M"}, changes(t, g))
		_, err := g.Diff(t.Context(), in(""), false)
		requireCode(t, wire.CodeGitFailed, err)
	})
}

// A git that does not end is ended with the request, a missing one is said, and
// so is one that fails.
func TestGitThatDoesNotWork(t *testing.T) {
	g := newGround(t)
	committed(t, g.root, "file")
	bin := t.TempDir()
	fake := func(script string) {
		put(t, filepath.Join(bin, "git"), "#!/bin/sh\n"+script+"\n")
		require.NoError(t, os.Chmod(filepath.Join(bin, "git"), 0o700))
	}
	t.Setenv("PATH", bin)
	_, err := g.Status(t.Context(), 0)
	requireCode(t, wire.CodeGitFailed, err)
	fake("exit 128")
	_, err = g.Log(t.Context(), in(""), 0, 0)
	requireCode(t, wire.CodeGitFailed, err)

	fake("exec /bin/sleep 60")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	soon(t, func() {
		_, err := g.Diff(ctx, in(""), false)
		requireCode(t, wire.CodeGitFailed, err)
		require.ErrorContains(t, err, "time")
	})
	fake("/bin/sleep 60 & echo") // holds the output open
	soon(t, func() {
		_, err := g.Status(t.Context(), 0)
		require.Error(t, err)
	})
}

// Of many requests at once, at most four run git at the same time, and all are
// answered.
func TestGitRunsAreBounded(t *testing.T) {
	g := newGround(t)
	committed(t, g.root, "file")
	bin, running, log := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "log")
	put(t, filepath.Join(bin, "git"), `#!/bin/sh
: > '`+running+`'/$$
set -- '`+running+`'/*
echo $# >> '`+log+`'
sleep 0.1
rm '`+running+`'/$$
`)
	require.NoError(t, os.Chmod(filepath.Join(bin, "git"), 0o700))
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	const requests, most = 7, 4
	answers := make(chan error)
	for range requests {
		go func() {
			_, err := g.Status(t.Context(), 0)
			answers <- err
		}()
	}
	for range requests {
		require.NoError(t, <-answers)
	}
	counts, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(counts)), 2*requests)
	for _, count := range strings.Fields(string(counts)) {
		n, err := strconv.Atoi(count)
		require.NoError(t, err)
		require.LessOrEqual(t, n, most)
	}
}
