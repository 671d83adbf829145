//go:build crashpoints

package crashpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Hit kills the process, as SIGKILL does, when name is the selected point. It
// returns otherwise.
func Hit(name string) {
	if os.Getenv(EnvAt) != name || !first() {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(fmt.Sprintf("crash point %s could not kill the process: %v", name, err))
	}
	select {} // the signal is delivered asynchronously
}

// first reports whether no other process died here before.
func first() bool {
	marker := os.Getenv(EnvOnce)
	if marker == "" {
		return true
	}
	f, err := os.OpenFile(marker, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("crash point marker: %v", err))
	}
	return true
}
