package parent

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// replace makes the descriptor of old refer to replacement, which it closes.
func replace(old, replacement *os.File) error {
	return errors.Join(unix.Dup3(int(replacement.Fd()), int(old.Fd()), 0), replacement.Close())
}
