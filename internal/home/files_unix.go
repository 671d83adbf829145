//go:build unix

package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

func writableByAll(mode fs.FileMode) bool { return mode.Perm()&0o002 != 0 }

func readableByOthers(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }

// syncDirectory makes a rename in the directory durable.
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}
