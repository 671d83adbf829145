//go:build crashpoints

package crashpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
)

var held sync.Once

// Hit kills the process, as SIGKILL does, when name is the selected point, and
// waits when it is the one to be held at. It returns otherwise.
func Hit(name string) {
	if os.Getenv(EnvHoldAt) == name {
		held.Do(hold)
	}
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

// hold waits until the holder ends the connection.
func hold() {
	conn, err := net.Dial("tcp", os.Getenv(EnvHoldBy))
	if err == nil {
		_, err = io.Copy(io.Discard, conn)
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		panic(fmt.Sprintf("crash point could not be held at: %v", err))
	}
}
