//go:build unix

package launch

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

const firstBeyondStandard = 3

// keepDescriptors marks what this process inherited without asking, a stale
// parent pipe say, so that no child gets it: a server that outlives everything
// would keep whoever waits for the end of that descriptor waiting (S-005.1).
// Everything that Go opens is marked already.
func keepDescriptors() error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("list own descriptors: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= firstBeyondStandard {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// giveReadyPipe makes the pipe the child's descriptor 3.
func giveReadyPipe(cmd *exec.Cmd, ready *os.File) { cmd.ExtraFiles = []*os.File{ready} }
