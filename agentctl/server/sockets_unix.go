//go:build unix

package server

import (
	"errors"
	"syscall"
)

// nothingListens reports whether a dial failed because no process could have
// accepted it.
func nothingListens(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EADDRNOTAVAIL) ||
		errors.Is(err, syscall.EAFNOSUPPORT)
}

func addressInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
