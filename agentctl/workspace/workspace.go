package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kandev/recovery/agentctl/wire"
)

// ErrRoot says that a root is not an accessible directory.
var ErrRoot = errors.New("a workspace root is not an accessible directory")

// Workspace is what may be reached of one instance. Without roots that is
// nothing. Its methods may be used from several goroutines; they fail with
// *wire.Error, or with an error that names no path.
type Workspace struct{ roots []root }

// root is a directory as it was when the instance was created.
type root struct {
	path     string
	identity fs.FileInfo
}

// Open remembers the directories that the roots are now. It fails with ErrRoot.
func Open(roots []string) (*Workspace, error) {
	w := &Workspace{}
	for _, path := range roots {
		dir, info, err := openRoot(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRoot, withoutPath(err))
		}
		if err := dir.Close(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRoot, withoutPath(err))
		}
		w.roots = append(w.roots, root{path: path, identity: info})
	}
	return w, nil
}

// openRoot opens a directory. The "." behind it keeps the open from waiting
// when a pipe has taken the directory's name.
func openRoot(path string) (*os.Root, fs.FileInfo, error) {
	dir, err := os.OpenRoot(path + string(filepath.Separator) + ".")
	if err != nil {
		return nil, nil, err
	}
	info, err := dir.Stat(".")
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	return dir, info, nil
}

// enter opens a root, if it still is the directory that it was.
func (w *Workspace) enter(n int) (*os.Root, error) {
	if n < 0 || n >= len(w.roots) {
		return nil, outside("the instance has no such root")
	}
	dir, info, err := openRoot(w.roots[n].path)
	if err != nil {
		return nil, refusal(nil, err)
	}
	if !os.SameFile(info, w.roots[n].identity) {
		return nil, errors.Join(outside("the root is another directory than when the instance was created"), dir.Close())
	}
	return dir, nil
}

// open enters the root of a place and returns the place's name in it.
func (w *Workspace) open(place wire.Place) (dir *os.Root, name string, err error) {
	if name, err = local(place.Path); err != nil {
		return nil, "", err
	}
	dir, err = w.enter(place.Root)
	return dir, name, err
}

// local is a path as the operating system writes it, below the root by its
// elements alone. Links are judged when it is opened.
func local(p string) (string, error) {
	switch {
	case strings.ContainsRune(p, 0) || !utf8.ValidString(p):
		return "", refuse(wire.CodeBadRequest, "the path is not text")
	case path.IsAbs(p):
		return "", outside("the path is not relative to the root")
	case slices.Contains(strings.Split(p, "/"), ".."):
		return "", outside(`the path contains ".."`)
	}
	name, err := filepath.Localize(path.Clean(p))
	if err != nil {
		return "", outside("the path is not one below the root")
	}
	return name, nil
}

// openDirectory opens a directory below dir as a root of its own. The "."
// behind its name keeps the open from waiting for what is not a directory.
func openDirectory(dir *os.Root, name string) (*os.Root, error) {
	below, err := dir.OpenRoot(name + string(filepath.Separator) + ".")
	return below, refusal(dir, err)
}

// openRegular opens a regular file without ever waiting for it.
func openRegular(dir *os.Root, name string, flag int) (*os.File, fs.FileInfo, error) {
	// Looked at first: to open a device can have an effect of its own.
	info, err := dir.Stat(name)
	if err != nil {
		return nil, nil, refusal(dir, err)
	}
	if err := regular(info); err != nil {
		return nil, nil, err
	}
	file, err := dir.OpenFile(name, flag|withoutWaiting, 0)
	if err != nil {
		return nil, nil, refusal(dir, err)
	}
	// Looked at again: the name may be another file's by now.
	if info, err = file.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, nil, refusal(dir, errors.Join(err, file.Close()))
	}
	return file, info, nil
}

func regular(info fs.FileInfo) error {
	switch kindOf(info) {
	case wire.KindFile:
		return nil
	case wire.KindDirectory:
		return refuse(wire.CodeWrongKind, "this is a directory")
	case wire.KindLink:
		return refuse(wire.CodeWrongKind, "this is a symbolic link")
	default:
		return refuse(wire.CodeWrongKind, "this is a device, a pipe or a socket")
	}
}

func kindOf(info fs.FileInfo) wire.EntryKind {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return wire.KindFile
	case mode.IsDir():
		return wire.KindDirectory
	case mode&fs.ModeSymlink != 0:
		return wire.KindLink
	default:
		return wire.KindSpecial
	}
}
