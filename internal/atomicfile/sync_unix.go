//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"os"
)

// SyncDirectory makes renames and removals in the directory durable.
func SyncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}
