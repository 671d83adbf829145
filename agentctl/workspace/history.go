package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kandev/recovery/agentctl/wire"
)

// Diff returns a patch of what is not staged, or of what is. A path narrows it
// down. Untracked files are not in it.
func (w *Workspace) Diff(ctx context.Context, place wire.Place, staged bool) (wire.GitDiff, error) {
	name, err := local(place.Path)
	if err != nil {
		return wire.GitDiff{}, err
	}
	ctx, done, s, err := w.git(ctx, place.Root)
	if err != nil {
		return wire.GitDiff{}, err
	}
	defer done()
	args := []string{
		"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short",
		"--ignore-submodules=dirty", "--src-prefix=a/", "--dst-prefix=b/", "-O" + os.DevNull,
	}
	if staged {
		args = append(args, "--cached")
	}
	patch, truncated, err := s.run(ctx, wire.MaxGitDiff, append(args, only(name)...)...)
	if err != nil {
		return wire.GitDiff{}, failed(err)
	}
	return wire.GitDiff{Patch: patch, Truncated: truncated}, nil
}

// only are the arguments that narrow git down to a place.
func only(name string) []string {
	if name == "." {
		return []string{"--"}
	}
	return []string{"--", filepath.ToSlash(name)}
}

// commitFormat prints one field a line; none of them holds a line end.
const (
	commitFormat = "%H%n%P%n%an%n%ae%n%at%n%s"
	commitFields = 6
)

// maxLog bounds, in bytes, what git prints of a log.
const maxLog = 4 << 20

// Log lists commits from the newest on, after skip of them; limit 0 means
// wire.MaxGitCommits, which is the most. A path narrows it down. It is empty
// before the first commit. What does not fit into 4 MiB is left out at the end.
func (w *Workspace) Log(ctx context.Context, place wire.Place, skip, limit int64) (wire.GitLog, error) {
	if limit == 0 {
		limit = wire.MaxGitCommits
	}
	if skip < 0 || limit < 0 || limit > wire.MaxGitCommits {
		return wire.GitLog{}, refuse(wire.CodeBadRequest,
			fmt.Sprintf("skip is negative, or limit is outside 0 to %d", wire.MaxGitCommits))
	}
	name, err := local(place.Path)
	if err != nil {
		return wire.GitLog{}, err
	}
	ctx, done, s, err := w.git(ctx, place.Root)
	if err != nil {
		return wire.GitLog{}, err
	}
	defer done()
	if _, _, err := s.run(ctx, maxPointer, "rev-parse", "--quiet", "--verify", "HEAD"); errors.Is(err, exitError(1)) {
		return wire.GitLog{Commits: []wire.GitCommit{}}, nil // nothing was committed yet
	}
	output, truncated, err := s.run(ctx, maxLog, append([]string{
		"log", "-z", "--no-color", "--no-mailmap", "--encoding=UTF-8", "--format=tformat:" + commitFormat,
		"--skip=" + strconv.FormatInt(skip, 10), "--max-count=" + strconv.FormatInt(limit, 10), "HEAD",
	}, only(name)...)...)
	if err != nil {
		return wire.GitLog{}, failed(err)
	}
	return parseLog(string(output), truncated)
}

func parseLog(output string, truncated bool) (wire.GitLog, error) {
	log := wire.GitLog{Commits: []wire.GitCommit{}}
	records := strings.Split(output, "\x00")
	for _, record := range records[:len(records)-1] {
		commit, err := parseCommit(record)
		if err != nil {
			return wire.GitLog{}, err
		}
		log.Commits = append(log.Commits, commit)
	}
	if !truncated && records[len(records)-1] != "" {
		return wire.GitLog{}, errLog
	}
	return log, nil
}

var errLog = refuse(wire.CodeGitFailed, "git printed a log that cannot be read")

func parseCommit(record string) (wire.GitCommit, error) {
	fields := strings.SplitN(record, "\n", commitFields)
	if len(fields) != commitFields {
		return wire.GitCommit{}, errLog
	}
	commit := wire.GitCommit{
		ID: fields[0], Parents: strings.Fields(fields[1]), Author: fields[2], Email: fields[3], Subject: fields[5],
	}
	// Whoever makes a commit can write anything there.
	if seconds, err := strconv.ParseInt(fields[4], 10, 64); err == nil {
		commit.At = writable(time.Unix(seconds, 0))
	}
	return commit, nil
}
