//go:build unix

package client

import (
	"errors"
	"syscall"
)

// nothingListens reports whether a dial failed because no process could have
// accepted it. A host without an address family has nobody listening there.
func nothingListens(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EADDRNOTAVAIL) ||
		errors.Is(err, syscall.EAFNOSUPPORT)
}
