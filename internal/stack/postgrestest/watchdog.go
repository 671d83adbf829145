//go:build unix

package postgrestest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// endCluster ends the postmaster whose pid file lies in the directory, at once
// and without a checkpoint, waits for it, and removes the directory.
const endCluster = `
read -r forever
pid=$(head -n 1 "$1/pg/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ]; then
  kill -QUIT "$pid" 2>/dev/null
  n=0
  while [ -e "$1/pg/data/postmaster.pid" ] && [ $n -lt 200 ]; do n=$((n+1)); sleep 0.05; done
fi
rm -rf "$1"
`

// watchdog ends a cluster when it is released, or when this process is gone.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

// watchedDirectory makes a directory for a cluster, and what clears it away.
func watchedDirectory() (dir string, w *watchdog, err error) {
	if dir, err = os.MkdirTemp(parent, "kandev-pg-"); err != nil {
		return "", nil, err
	}
	// Postgres runs as another user when root runs the tests.
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", nil, err
	}
	w = &watchdog{cmd: exec.Command("/bin/sh", "-c", endCluster, "watchdog", dir)}
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if w.pipe, err = w.cmd.StdinPipe(); err != nil {
		return "", nil, err
	}
	return dir, w, w.cmd.Start()
}

func (w *watchdog) release() error { return errors.Join(w.pipe.Close(), w.cmd.Wait()) }
