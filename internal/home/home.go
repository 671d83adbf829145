package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Files of a home that this package owns.
const (
	lockFile         = "backend.lock"
	installationFile = "installation.json"
	tokenFile        = "api-token"
	runtimeFile      = "backend.json"
)

// Errors of Open and of the readers; each comes with the path and a remedy.
var (
	ErrNotUsable  = errors.New("the home directory cannot be used")
	ErrInUse      = errors.New("another backend uses the home directory") // O-002.4
	ErrCopied     = errors.New("the home directory belongs to another installation")
	ErrUnsafeFile = errors.New("the file may have been read by others")
	ErrNotRunning = errors.New("no backend is running")
)

// Home is an open home directory. One process at a time has it open.
type Home struct {
	path         string
	lock         *flock.Flock
	installation string
	token        string
}

// Open opens the directory at path, which it creates if it is absent, and keeps
// every other backend out until Close. Symbolic links are resolved, so that two
// names of one directory are one home.
func Open(path string) (*Home, error) { return open(path, thisMachine) }

func open(path string, machine machine) (*Home, error) {
	resolved, err := prepare(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNotUsable, path, err)
	}
	h := &Home{path: resolved}
	if h.lock, err = acquire(resolved); err != nil {
		return nil, err
	}
	if err := h.load(machine); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *Home) load(machine machine) (err error) {
	if h.installation, err = identify(h.path, machine); err != nil {
		return err
	}
	h.token, err = ensureToken(filepath.Join(h.path, tokenFile))
	return err
}

// Path is the directory with every symbolic link resolved.
func (h *Home) Path() string { return h.path }

// Installation is the opaque id of the installation.
func (h *Home) Installation() string { return h.installation }

// Token is what users of the API present.
func (h *Home) Token() string { return h.token }

// Close lets another backend in. It comes last in a backend's teardown (O-002.4).
func (h *Home) Close() error {
	if err := h.lock.Close(); err != nil {
		return fmt.Errorf("release the lock of the home directory: %w", err)
	}
	return nil
}

func prepare(path string) (string, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("%w; set KANDEV_HOME to a directory that you may write to", err)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if resolved, err = filepath.Abs(resolved); err != nil {
		return "", err
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", err
	}
	if writableByAll(info.Mode()) {
		return "", fmt.Errorf("every user may write to %s; run: chmod o-w %s", resolved, resolved)
	}
	return resolved, nil
}

// acquire takes the lock and never waits for it.
func acquire(dir string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, lockFile))
	taken, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("%w: lock %s: %w; make the directory writable for you", ErrNotUsable, lock.Path(), err)
	}
	if taken {
		return lock, nil
	}
	err = fmt.Errorf("%w: %s; stop that backend, or set KANDEV_HOME to another directory", ErrInUse, dir)
	if holder, readErr := ReadRuntime(dir); readErr == nil {
		err = fmt.Errorf("%w: %s, process %d at %s; stop it, or set KANDEV_HOME to another directory",
			ErrInUse, dir, holder.PID, holder.Address)
	}
	return nil, errors.Join(err, lock.Close())
}

// readFile reads a file of the home; found is false only if it is absent.
func readFile(path string) (content []byte, found bool, err error) {
	content, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return content, err == nil, err
}
