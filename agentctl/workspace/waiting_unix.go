//go:build unix

package workspace

import "syscall"

// withoutWaiting keeps the open of a pipe from waiting for its other end, and a
// terminal from becoming ours.
const withoutWaiting = syscall.O_NONBLOCK | syscall.O_NOCTTY
