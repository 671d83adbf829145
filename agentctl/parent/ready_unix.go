//go:build unix

package parent

import "os"

// readyDescriptor is the number of the inherited ready pipe.
const readyDescriptor = 3

// ReadyPipe is the inherited ready pipe.
func ReadyPipe() *os.File { return os.NewFile(readyDescriptor, "ready") }
