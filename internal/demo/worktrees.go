package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// errNoGit: the demo works in real git worktrees.
var errNoGit = errors.New("no `git` program found on PATH; install git")

// worktrees makes a repository and one worktree of it per session.
func worktrees(ctx context.Context, dir string, count int) ([]string, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errNoGit
	}
	repo := filepath.Join(dir, "repository")
	if err := os.MkdirAll(filepath.Join(repo, "src"), 0o755); err != nil {
		return nil, err
	}
	files := map[string]string{"README.md": "# A project\n", "src/main.go": "package main\n\nfunc main() {}\n", "run.sh": "#!/bin/sh\nexec go run ./src\n"}
	for name, content := range files {
		mode := fs.FileMode(0o644)
		if filepath.Ext(name) == ".sh" {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(repo, name), []byte(content), mode); err != nil {
			return nil, err
		}
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "--message", "Begin"}} {
		if err := git(ctx, repo, args...); err != nil {
			return nil, err
		}
	}
	trees := make([]string, count)
	for i := range trees {
		trees[i] = filepath.Join(dir, fmt.Sprintf("worktree-%02d", i+1))
		if err := git(ctx, repo, "worktree", "add", "--quiet", "-b", fmt.Sprintf("session-%02d", i+1), trees[i]); err != nil {
			return nil, err
		}
		// Uncommitted work is what a careless recovery would lose.
		note := filepath.Join(trees[i], "uncommitted.txt")
		if err := os.WriteFile(note, fmt.Appendf(nil, "work in progress of session %d\n", i+1), 0o600); err != nil {
			return nil, err
		}
	}
	return trees, nil
}

// git runs without the user's settings, which could sign, template or hook.
func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_AUTHOR_NAME=Demo", "GIT_AUTHOR_EMAIL=demo@localhost", "GIT_COMMITTER_NAME=Demo", "GIT_COMMITTER_EMAIL=demo@localhost",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Fingerprint covers every file of a worktree: its name, mode, content or link
// target, the worktree's own .git file included (S-001.7).
func Fingerprint(tree string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %v ", name, info.Mode())
		switch {
		case info.Mode().IsRegular():
			return hashFile(sum, path, info.Size())
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(sum, "%q", target)
			return err
		default:
			return nil
		}
	})
	if err != nil {
		return "", fmt.Errorf("fingerprint a worktree: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func hashFile(sum io.Writer, path string, size int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	fmt.Fprintf(sum, "%d ", size)
	_, err = io.Copy(sum, file)
	return err
}

func fingerprints(trees []string) ([]string, error) {
	all := make([]string, len(trees))
	for i, tree := range trees {
		var err error
		if all[i], err = Fingerprint(tree); err != nil {
			return nil, err
		}
	}
	return all, nil
}
