package client

import (
	"errors"

	"golang.org/x/sys/windows"
)

// nothingListens reports whether a dial failed because no process could have
// accepted it. A host without an address family has nobody listening there.
func nothingListens(err error) bool {
	return errors.Is(err, windows.WSAECONNREFUSED) || errors.Is(err, windows.WSAEADDRNOTAVAIL) ||
		errors.Is(err, windows.WSAEAFNOSUPPORT)
}
