package home

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kandev/recovery/internal/atomicfile"
)

// Runtime tells other programs of the same user where the running backend is.
type Runtime struct {
	Address   string    `json:"address"` // host:port of its API
	PID       int       `json:"pid"`
	BootID    string    `json:"boot_id"`
	StartedAt time.Time `json:"started_at"`
}

// WriteRuntime tells where this backend is.
func (h *Home) WriteRuntime(r Runtime) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", runtimeFile, err)
	}
	return atomicfile.Write(filepath.Join(h.path, runtimeFile), append(content, '\n'))
}

// RemoveRuntime says that no backend is running any more.
func (h *Home) RemoveRuntime() error {
	if err := os.Remove(filepath.Join(h.path, runtimeFile)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove %s: %w", runtimeFile, err)
	}
	return nil
}

// ReadRuntime reads where the backend of the home at path is. ErrNotRunning means
// that none has said so; one that was killed leaves its last word behind, so that
// its boot id has to be compared with the answer at the address.
func ReadRuntime(path string) (Runtime, error) {
	file := filepath.Join(path, runtimeFile)
	content, found, err := readFile(file)
	if err != nil {
		return Runtime{}, err
	}
	if !found {
		return Runtime{}, fmt.Errorf("%w in %s; start one, or set KANDEV_HOME", ErrNotRunning, path)
	}
	var r Runtime
	if err := json.Unmarshal(content, &r); err != nil {
		return Runtime{}, fmt.Errorf("read %s: %w", file, err)
	}
	return r, nil
}
