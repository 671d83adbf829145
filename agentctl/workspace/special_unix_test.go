//go:build unix

package workspace_test

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// S-002.5: pipes and sockets are refused at once, as a file, as a directory and
// in the middle of a path; the open of a pipe would wait for its other end.
func TestSpecialFilesAreRefusedAtOnce(t *testing.T) {
	g := newGround(t)
	require.NoError(t, syscall.Mkfifo(g.at("pipe"), 0o600))
	t.Chdir(g.root) // a socket's name is short
	listener, err := net.Listen("unix", "socket")
	require.NoError(t, err)
	defer listener.Close()
	link(t, "pipe", g.at("link"))

	soon(t, func() {
		for _, path := range []string{"pipe", "socket", "link", "pipe/file", "socket/file"} {
			_, err := g.Read(in(path), 0, 0)
			requireCode(t, wire.CodeWrongKind, err, "read", path)
			_, err = g.Write(write(path, "new"))
			requireCode(t, wire.CodeWrongKind, err, "write", path)
			_, err = g.List(in(path))
			requireCode(t, wire.CodeWrongKind, err, "list", path)
		}
	})
	listed, err := g.List(in(""))
	require.NoError(t, err)
	kinds := map[string]wire.EntryKind{}
	for _, e := range listed.Entries {
		kinds[e.Name] = e.Kind
	}
	require.Equal(t, map[string]wire.EntryKind{
		"pipe": wire.KindSpecial, "socket": wire.KindSpecial, "link": wire.KindLink,
	}, kinds)
}

// A pipe in the place of the root, and in the place of git's own files, is
// refused at once as well.
func TestPipesInPlaceOfDirectories(t *testing.T) {
	g := newGround(t)
	git(t, g.root, "init")
	require.NoError(t, os.RemoveAll(g.at(".git/HEAD")))
	require.NoError(t, os.MkdirAll(g.at(".git/objects/info"), 0o700))
	require.NoError(t, syscall.Mkfifo(g.at(".git/objects/info/alternates"), 0o600))
	soon(t, func() {
		_, err := g.Status(t.Context(), 0)
		requireCode(t, wire.CodeWrongKind, err)
	})
	require.NoError(t, os.Rename(g.root, g.root+"-moved"))
	require.NoError(t, syscall.Mkfifo(g.root, 0o600))
	soon(t, func() {
		_, err := g.Read(in("file"), 0, 0)
		requireCode(t, wire.CodeWrongKind, err)
	})
}

// swapped runs do until it was true and false often enough each, while
// another goroutine swaps what the name stands for between itself and a stand-in.
func swapped(t *testing.T, enough int, name string, standIn func() error, do func() bool) {
	t.Helper()
	var stop atomic.Bool
	var swapping sync.WaitGroup
	swapping.Go(func() {
		aside := name + "-aside"
		// Each state lasts a little, so that both are met.
		rest := func() error {
			for range 30 {
				if _, err := os.Lstat(name); err != nil {
					return err
				}
			}
			return nil
		}
		for !stop.Load() {
			for _, step := range []func() error{
				rest, func() error { return os.Rename(name, aside) }, standIn,
				rest, func() error { return os.Remove(name) }, func() error { return os.Rename(aside, name) },
			} {
				if err := step(); err != nil {
					t.Errorf("swap: %v", err)
					return
				}
			}
		}
	})
	defer swapping.Wait()
	defer stop.Store(true)
	end := time.Now().Add(deadline)
	for yes, no := 0, 0; yes < enough || no < enough; {
		require.True(t, time.Now().Before(end), "done %d times, refused %d times", yes, no)
		if do() {
			yes++
		} else {
			no++
		}
	}
}

// S-002.5: a directory that is swapped for a link to another one, at any moment
// of a read, a listing or a write, gives nothing of the other one and changes
// nothing in it.
func TestADirectorySwappedForALink(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	put(t, g.at("dir/file"), "inside")
	swapped(t, 40, g.at("dir"), func() error { return os.Symlink(g.outside, g.at("dir")) }, func() bool {
		content, readErr := g.Read(in("dir/file"), 0, 0)
		if readErr == nil {
			require.Equal(t, "inside", string(content.Content))
		}
		listed, err := g.List(in("dir"))
		if err == nil {
			require.LessOrEqual(t, len(listed.Entries), 1, "only what is inside")
		}
		if _, err := g.Write(write("dir/file", "inside")); err != nil {
			require.NotContains(t, err.Error(), g.root)
		}
		return readErr == nil
	})
	g.untouched(t)
}

// S-002.5: a file that is swapped for a pipe between the look at it and its
// opening does not make a read or a write wait.
func TestAFileSwappedForAPipe(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	put(t, g.at("file"), "inside")
	soon(t, func() {
		swapped(t, 2000, g.at("file"), func() error { return syscall.Mkfifo(g.at("file"), 0o600) }, func() bool {
			content, err := g.Read(in("file"), 0, 0)
			if err == nil {
				require.Equal(t, "inside", string(content.Content))
			}
			return err == nil
		})
	})
}

// S-002.5: a file that is swapped for a link gives nothing of what that names.
func TestAFileSwappedForALink(t *testing.T) {
	g := newGround(t)
	put(t, g.at("file"), "inside")
	target := filepath.Join(g.outside, "file")
	swapped(t, 500, g.at("file"), func() error { return os.Symlink(target, g.at("file")) }, func() bool {
		content, err := g.Read(in("file"), 0, 0)
		if err == nil {
			require.Equal(t, "inside", string(content.Content))
		}
		return err == nil
	})
	g.untouched(t)
}
