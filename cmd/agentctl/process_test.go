//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// running reports whether a process exists and has not ended; one that waits to
// be reaped has.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// descriptors are what a process's open descriptors refer to, by number.
func descriptors(t *testing.T, pid int) map[string]string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	open := map[string]string{}
	for _, entry := range entries {
		if target, err := os.Readlink(dir + "/" + entry.Name()); err == nil {
			open[entry.Name()] = target
		}
	}
	return open
}

func procFile(t *testing.T, pid int, name string) string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	require.NoError(t, err)
	return string(raw)
}

func session(t *testing.T, pid int) int {
	t.Helper()
	sid, err := unix.Getsid(pid)
	require.NoError(t, err)
	return sid
}

func kill(t *testing.T, pid int, s unix.Signal) {
	t.Helper()
	require.NoError(t, unix.Kill(pid, s))
}
