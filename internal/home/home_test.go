package home

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// envHold makes the test binary a second backend: it opens the home that the
// variable names, says how that went, and keeps it open until its input ends.
const envHold = "KANDEV_TEST_HOLD_HOME"

func TestMain(m *testing.M) {
	path := os.Getenv(envHold)
	if path == "" {
		os.Exit(m.Run())
	}
	h, err := Open(path)
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("open\n")
	io.Copy(io.Discard, os.Stdin)
	h.Close()
}

func mustOpen(t *testing.T, path string) *Home {
	t.Helper()
	h, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// reopen opens and closes the home on the machine, and returns the id.
func reopen(t *testing.T, path string, m machine) string {
	t.Helper()
	h, err := open(path, m)
	require.NoError(t, err)
	require.NoError(t, h.Close())
	return h.Installation()
}

func machineWithID(t *testing.T, id string) machine {
	t.Helper()
	file := filepath.Join(t.TempDir(), "machine-id")
	require.NoError(t, os.WriteFile(file, []byte(id+"\n"), 0o600))
	return machine{files: []string{file}}
}

// The directory and its secrets are made for their owner alone, and stay the same.
func TestOpenCreatesOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "home")
	h, err := Open(path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	info, err = os.Stat(filepath.Join(path, tokenFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Len(t, h.Installation(), 32)
	token, err := ReadToken(path)
	require.NoError(t, err)
	require.Equal(t, h.Token(), token)
	require.NoError(t, h.Close())

	again := mustOpen(t, path)
	require.Equal(t, h.Installation(), again.Installation())
	require.Equal(t, h.Token(), again.Token())
	other := mustOpen(t, t.TempDir())
	require.NotEqual(t, h.Installation(), other.Installation())
	require.NotEqual(t, h.Token(), other.Token())
}

// O-002.4: a second backend in the same process or another one is refused, through
// a symbolic link too, and told what to do; once the first has closed, it gets in.
func TestSecondBackendIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home")
	first, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, first.WriteRuntime(Runtime{Address: "127.0.0.1:7", PID: 4711}))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))

	for _, name := range []string{path, link} {
		_, err = Open(name)
		require.ErrorIs(t, err, ErrInUse)
		require.ErrorContains(t, err, "4711")
		require.ErrorContains(t, err, "KANDEV_HOME")
	}
	said, release := otherProcess(t, link)
	release()
	require.Contains(t, said, "another backend")

	require.NoError(t, first.Close())
	said, release = otherProcess(t, link)
	require.Equal(t, "open\n", said)
	_, err = Open(path)
	require.ErrorIs(t, err, ErrInUse)
	release()
	require.Equal(t, first.Path(), mustOpen(t, link).Path())
}

// O-002.4: a backend that was killed leaves no lock behind.
func TestKilledBackendLeavesNoLock(t *testing.T) {
	path := t.TempDir()
	cmd, said, _ := startOther(t, path)
	require.Equal(t, "open\n", said)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	mustOpen(t, path)
}

func otherProcess(t *testing.T, path string) (said string, release func()) {
	t.Helper()
	cmd, said, stdin := startOther(t, path)
	return said, func() {
		require.NoError(t, stdin.Close())
		if err := cmd.Wait(); err != nil {
			require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%v", err)
		}
	}
}

func startOther(t *testing.T, path string) (*exec.Cmd, string, io.Closer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHold+"="+path)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return cmd, said, stdin
}

// What cannot be a home is refused with the path.
func TestUnusableHomes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	dangling := filepath.Join(dir, "dangling")
	require.NoError(t, os.Symlink(filepath.Join(file, "x"), dangling))
	open := filepath.Join(dir, "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777))
	for _, path := range []string{file, filepath.Join(file, "below"), dangling, open} {
		_, err := Open(path)
		require.ErrorIs(t, err, ErrNotUsable, path)
		require.ErrorContains(t, err, path)
	}
}

// A home that came from another machine is refused with the ways out, each of
// which works.
func TestHomeOfAnotherMachine(t *testing.T) {
	here := machineWithID(t, "0123456789abcdef0123456789abcdef")
	there := machineWithID(t, "fedcba9876543210fedcba9876543210")
	path := t.TempDir()
	id := reopen(t, path, there)
	file := filepath.Join(path, installationFile)

	_, err := open(path, here)
	require.ErrorIs(t, err, ErrCopied)
	require.ErrorContains(t, err, file)
	require.Equal(t, id, reopen(t, path, there), "refusing changed nothing")

	known, _, err := readInstallation(file)
	require.NoError(t, err)
	require.NotContains(t, known.Machine, "fedcba98", "the machine's id is not given away")
	known.Machine = ""
	require.NoError(t, writeInstallation(file, known))
	require.Equal(t, id, reopen(t, path, here), "moved")
	_, err = open(path, there)
	require.ErrorIs(t, err, ErrCopied)

	require.NoError(t, os.Remove(file))
	require.NotEqual(t, id, reopen(t, path, there), "an installation of its own")
}

// A copy on the same machine is refused while the original is there; a directory
// that was moved is the same installation.
func TestCopyAndMoveOnOneMachine(t *testing.T) {
	m := machineWithID(t, "0123456789abcdef0123456789abcdef")
	dir := t.TempDir()
	original, copied, moved := filepath.Join(dir, "original"), filepath.Join(dir, "copied"), filepath.Join(dir, "moved")
	id := reopen(t, original, m)
	require.NoError(t, os.CopyFS(copied, os.DirFS(original)))
	require.NoError(t, os.Chmod(filepath.Join(copied, tokenFile), 0o600))
	_, err := open(copied, m)
	require.ErrorIs(t, err, ErrCopied)
	require.ErrorContains(t, err, filepath.Join(copied, installationFile))

	require.NoError(t, os.Rename(original, moved))
	require.Equal(t, id, reopen(t, moved, m))
	require.Equal(t, id, reopen(t, moved, m))
	require.Equal(t, id, reopen(t, copied, m), "the place that the copy names is empty now")
}

// Damaged files are told apart from absent ones, and are not replaced.
func TestDamagedFiles(t *testing.T) {
	for name, content := range map[string]string{installationFile: "{", tokenFile: " \n"} {
		path := t.TempDir()
		file := filepath.Join(path, name)
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := Open(path)
		require.ErrorIs(t, err, ErrNotUsable, name)
		require.ErrorContains(t, err, file)
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, content, string(kept))
	}
}

// A token that others could read is worthless.
func TestTokenReadableByOthers(t *testing.T) {
	path := t.TempDir()
	require.NoError(t, mustOpenClosed(t, path))
	require.NoError(t, os.Chmod(filepath.Join(path, tokenFile), 0o640))
	_, err := Open(path)
	require.ErrorIs(t, err, ErrUnsafeFile)
	_, err = ReadToken(path)
	require.ErrorIs(t, err, ErrUnsafeFile)
}

func mustOpenClosed(t *testing.T, path string) error {
	t.Helper()
	h, err := Open(path)
	require.NoError(t, err)
	return h.Close()
}

// Other programs find the running backend, and learn when there is none.
func TestRuntimeFile(t *testing.T) {
	path := t.TempDir()
	_, err := ReadRuntime(path)
	require.ErrorIs(t, err, ErrNotRunning)
	_, err = ReadToken(path)
	require.ErrorIs(t, err, ErrNotRunning)

	h := mustOpen(t, path)
	want := Runtime{Address: "127.0.0.1:38429", PID: 7, BootID: "b", StartedAt: time.Unix(1, 0).UTC()}
	require.NoError(t, h.WriteRuntime(Runtime{PID: 1}))
	require.NoError(t, h.WriteRuntime(want))
	got, err := ReadRuntime(path)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoError(t, h.RemoveRuntime())
	require.NoError(t, h.RemoveRuntime())
	_, err = ReadRuntime(path)
	require.ErrorIs(t, err, ErrNotRunning)

	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, entries, 3, "no temporary file is left")
}

// A machine without an id gets one substitute, outside of the homes, also when
// several backends look for it at once.
func TestMachineWithoutID(t *testing.T) {
	dir := t.TempDir()
	unfinished := filepath.Join(dir, "machine-id")
	require.NoError(t, os.WriteFile(unfinished, []byte("uninitialized\n"), 0o600))
	m := machine{
		files:      []string{filepath.Join(dir, "absent"), unfinished},
		substitute: func() (string, error) { return filepath.Join(dir, "config", "id"), nil },
	}
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			id, err := m.id()
			if err == nil {
				ids[i] = id
			}
		})
	}
	wg.Wait()
	require.Len(t, ids[0], 32)
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}

	unreadable := machine{files: []string{dir}, substitute: m.substitute}
	_, err := unreadable.id()
	require.Error(t, err, "an id that cannot be read is not an absent one")
}
