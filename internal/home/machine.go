package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gofrs/flock"

	"github.com/kandev/recovery/internal/atomicfile"
	"github.com/kandev/recovery/internal/credential"
)

// machine knows where the id of the machine is written. Where the system has
// none, as on macOS, Windows and in some containers, a random substitute is kept
// outside of every home, in the user's configuration directory.
type machine struct {
	files      []string
	substitute func() (string, error) // path of the substitute's file
}

var thisMachine = machine{
	files: []string{"/etc/machine-id", "/var/lib/dbus/machine-id"},
	substitute: func() (string, error) {
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "kandev", "machine-id"), err
	},
}

// wellFormed keeps the "uninitialized" of a first boot from being an id.
var wellFormed = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (m machine) id() (string, error) {
	for _, file := range m.files {
		id, found, err := readMachineID(file)
		if err != nil {
			return "", fmt.Errorf("read the machine's id: %w", err)
		}
		if found {
			return id, nil
		}
	}
	file, err := m.substitute()
	if err != nil {
		return "", fmt.Errorf("this machine has no id, and there is no place for a substitute: %w", err)
	}
	return ensureSubstitute(file)
}

// ensureSubstitute holds a lock, because backends of several homes may look for
// the substitute at once.
func ensureSubstitute(file string) (id string, err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("this machine has no id, and a substitute cannot be kept: %w", err)
	}
	lock := flock.New(file + ".lock")
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	id, found, err := readMachineID(file)
	if err != nil || found {
		return id, err
	}
	id = credential.NewID()
	return id, atomicfile.Write(file, []byte(id+"\n"))
}

// readMachineID counts an empty or unfinished file as absent, but not one that
// cannot be read.
func readMachineID(file string) (id string, found bool, err error) {
	content, found, err := readFile(file)
	if err != nil || !found {
		return "", false, err
	}
	id = strings.TrimSpace(string(content))
	return id, wellFormed.MatchString(id), nil
}
