package server

import (
	"errors"

	"golang.org/x/sys/windows"
)

// nothingListens reports whether a dial failed because no process could have
// accepted it.
func nothingListens(err error) bool {
	return errors.Is(err, windows.WSAECONNREFUSED) || errors.Is(err, windows.WSAEADDRNOTAVAIL) ||
		errors.Is(err, windows.WSAEAFNOSUPPORT)
}

func addressInUse(err error) bool { return errors.Is(err, windows.WSAEADDRINUSE) }
