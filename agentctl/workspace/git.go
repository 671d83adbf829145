package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kandev/recovery/agentctl/wire"
)

const (
	// maxProcesses bounds how many git processes run at once, of all instances.
	maxProcesses = 4
	// pipeWait is how long the output of a git that has ended may stay open.
	pipeWait = time.Second
	// maxFilters bounds, in bytes, the names of filters that are turned off.
	maxFilters = 256 << 10
)

var processes = make(chan struct{}, maxProcesses)

// errFull ends the copying of output that is over its bound.
var errFull = errors.New("output over its bound")

// exitError is the exit status of a git that failed.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("git exited with status %d", int(e)) }

// bounded keeps the first bytes that are written to it.
type bounded struct {
	kept  []byte
	limit int
	full  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - len(b.kept)
	if len(p) > room {
		b.full = true
		b.kept = append(b.kept, p[:room]...)
		return room, errFull
	}
	b.kept = append(b.kept, p...)
	return len(p), nil
}

// session runs git for one request.
type session struct {
	executable  string
	directory   string
	environment []string
	settings    []setting
}

// setting is a key of git's configuration with its value.
type setting struct{ key, value string }

// git prepares to run git for a root. Everything that it runs ends with done,
// and takes wire.MaxGitTime at most.
func (w *Workspace) git(ctx context.Context, root int) (_ context.Context, done func(), s *session, err error) {
	repo, err := w.repository(root)
	if err != nil {
		return nil, nil, nil, err
	}
	executable, err := exec.LookPath("git")
	if err != nil {
		return nil, nil, nil, refuse(wire.CodeGitFailed, "git is not installed where the control server runs")
	}
	ctx, cancel := context.WithTimeout(ctx, wire.MaxGitTime)
	select {
	case processes <- struct{}{}:
	case <-ctx.Done():
		cancel()
		return nil, nil, nil, unfinished()
	}
	done = func() {
		<-processes
		cancel()
	}
	s = &session{
		executable: executable, directory: repo.workTree,
		environment: environment(repo), settings: slices.Clone(harmless),
	}
	if err := s.turnFiltersOff(ctx); err != nil {
		done()
		return nil, nil, nil, err
	}
	return ctx, done, s, nil
}

func unfinished() error {
	return refuse(wire.CodeGitFailed, "git was not finished in its time")
}

// run returns at most limit bytes of what git prints. It fails with an
// exitError if git does.
func (s *session) run(ctx context.Context, limit int, args ...string) (output []byte, truncated bool, err error) {
	out := &bounded{kept: []byte{}, limit: limit}
	cmd := exec.CommandContext(ctx, s.executable, append([]string{"--no-pager", "--no-optional-locks"}, args...)...)
	cmd.Dir, cmd.Env = s.directory, append(slices.Clone(s.environment), variables(s.settings)...)
	cmd.Stdout, cmd.WaitDelay = out, pipeWait
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, false, unfinished()
	case out.full:
		return out.kept, true, nil
	case errors.As(err, &exit):
		return nil, false, exitError(exit.ExitCode())
	case err != nil:
		return nil, false, refuse(wire.CodeGitFailed, "git could not be run")
	}
	return out.kept, false, nil
}

// failed turns an exit status into a refusal.
func failed(err error) error {
	var exit exitError
	if errors.As(err, &exit) {
		return refuse(wire.CodeGitFailed, exit.Error())
	}
	return err
}

// environment is all that git learns from us: which repository and which work
// tree, whatever core.worktree says, and that no configuration but the
// repository's own counts.
func environment(repo repository) []string {
	env := []string{
		"GIT_DIR=" + repo.gitDir,
		"GIT_COMMON_DIR=" + repo.common,
		"GIT_WORK_TREE=" + repo.workTree,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none", // older versions fetch missing objects otherwise
		"LC_ALL=C",
	}
	for _, name := range []string{"PATH", "SYSTEMROOT", "TMPDIR", "TEMP"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// harmless are settings under which git starts no program and reads no file
// that the repository's configuration names, and prints what we can read.
var harmless = []setting{
	{"core.fsmonitor", "false"},
	{"core.hooksPath", os.DevNull},
	{"core.excludesFile", os.DevNull},
	{"core.attributesFile", os.DevNull},
	{"core.untrackedCache", "false"},
	{"core.quotePath", "false"},
	{"core.bigFileThreshold", "16m"}, // larger files are compared as binary, in pieces
	{"log.showSignature", "false"},
	{"status.submoduleSummary", "false"},
	{"diff.autoRefreshIndex", "false"}, // it would take the lock of the index
}

// variables are how git takes settings that count more than any file.
func variables(settings []setting) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for n, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, s.key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, s.value))
	}
	return env
}

// turnFiltersOff keeps git from starting the content filters that the
// repository's configuration names. They can only be turned off by name.
func (s *session) turnFiltersOff(ctx context.Context) error {
	keys, truncated, err := s.run(ctx, maxFilters, "config", "--null", "--name-only", "--get-regexp", `^filter\.`)
	if errors.Is(err, exitError(1)) { // there are none
		return nil
	}
	if err == nil && truncated {
		return refuse(wire.CodeGitFailed, "the repository configures too many filters")
	}
	if err != nil {
		return failed(err)
	}
	for _, filter := range filters(keys) {
		s.settings = append(s.settings,
			setting{filter + ".clean", ""}, setting{filter + ".process", ""}, setting{filter + ".required", "false"})
	}
	return nil
}

// filters are the sections of the keys filter.<name>.<variable>.
func filters(keys []byte) []string {
	var sections []string
	for key := range strings.SplitSeq(string(keys), "\x00") {
		if end := strings.LastIndexByte(key, '.'); end > len("filter") {
			sections = append(sections, key[:end])
		}
	}
	slices.Sort(sections)
	return slices.Compact(sections)
}
