package launch

import (
	"os"
	"os/exec"
	"syscall"
)

// giveReadyPipe makes the pipe the child's standard output: it inherits no
// numbered descriptors here, and writes nothing else to it.
func giveReadyPipe(cmd *exec.Cmd, ready *os.File) { cmd.Stdout = ready }

// keepDescriptors has nothing to do: what a child inherits is listed by its start.
func keepDescriptors() error { return nil }

// attributes are those of any child: a server is always bound here, by its
// standard input (S-005.4).
func attributes(bool) *syscall.SysProcAttr { return nil }

// pinThread is for platforms with a parent-death signal.
func pinThread() {}
