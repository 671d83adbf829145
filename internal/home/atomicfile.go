package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// writeFile puts a file in place whole: a reader, and a crash at any moment, sees
// the old content or the new. Only its owner may read it.
func writeFile(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = temp.Write(content)
	if err == nil {
		err = temp.Sync()
	}
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	return syncDirectory(filepath.Dir(path))
}
