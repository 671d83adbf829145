package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kandev/recovery/agentctl/wire"
)

// maxPointer bounds, in bytes, a file that holds one path.
const maxPointer = 8 << 10

// repository is what git is told to use for a root.
type repository struct {
	workTree string
	gitDir   string // of this work tree
	common   string // of the repository; gitDir unless the work tree is a linked one
}

// repository finds the repository of which the root is a work tree, and refuses
// one that a file of the root merely names: the place of another repository
// would let git tell what lies outside (S-002.5).
func (w *Workspace) repository(n int) (repository, error) {
	dir, err := w.enter(n)
	if err != nil {
		return repository{}, err
	}
	defer dir.Close()
	r := repository{workTree: w.roots[n].path}
	info, err := dir.Lstat(".git")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return repository{}, refuse(wire.CodeNoRepository, "the root is not the top of a git work tree")
	case err != nil:
		return repository{}, refusal(dir, err)
	case info.IsDir():
		r.gitDir = filepath.Join(r.workTree, ".git")
		r.common = r.gitDir
		err = whole(dir)
	case info.Mode().IsRegular():
		err = r.link(dir, info)
	default:
		err = foreign()
	}
	if err != nil {
		return repository{}, err
	}
	return r, r.selfContained()
}

func foreign() error {
	return &wire.Error{
		Code: wire.CodeOutsideWorkspace, Message: "the root names a repository that does not name the root",
		Remedy: "use a directory with a repository of its own, or one made by git worktree",
	}
}

// whole refuses a .git directory that takes references from another one.
func whole(dir *os.Root) error {
	_, err := dir.Lstat(filepath.Join(".git", "commondir"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return refusal(dir, err)
	}
	return foreign()
}

// link follows the .git file of a linked work tree. The repository that it names
// must hold a record of this very file, which git keeps for its work trees and
// whoever writes below the root cannot make elsewhere.
func (r *repository) link(dir *os.Root, file fs.FileInfo) error {
	content, err := pointer(dir, ".git")
	if err != nil {
		return err
	}
	target, ok := bytes.CutPrefix(content, []byte("gitdir: "))
	if !ok {
		return refuse(wire.CodeNoRepository, "the root's .git file is not one of git")
	}
	r.gitDir = absolute(r.workTree, target)
	trees := filepath.Dir(r.gitDir)
	r.common = filepath.Dir(trees)
	if filepath.Base(trees) != "worktrees" {
		return foreign()
	}
	return r.acknowledged(file)
}

// acknowledged checks the record: it names the .git file, and the repository in
// which it lies as the one that it belongs to.
func (r *repository) acknowledged(file fs.FileInfo) error {
	dir, _, err := openRoot(r.gitDir)
	if err != nil {
		return foreign()
	}
	defer dir.Close()
	common, err := os.Stat(r.common)
	if err != nil || !r.records(dir, "gitdir", file) || !r.records(dir, "commondir", common) {
		return foreign()
	}
	return nil
}

func (r *repository) records(dir *os.Root, name string, want fs.FileInfo) bool {
	content, err := pointer(dir, name)
	if err != nil {
		return false
	}
	named, err := os.Lstat(absolute(r.gitDir, content))
	return err == nil && os.SameFile(named, want)
}

// pointer reads a file that holds one path.
func pointer(dir *os.Root, name string) ([]byte, error) {
	file, _, err := openRegular(dir, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxPointer))
	return bytes.TrimRight(content, "\r\n"), refusal(dir, err)
}

func absolute(base string, path []byte) string {
	if p := filepath.FromSlash(string(path)); filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, string(path))
}

// selfContained refuses a repository that shows what another one holds: by
// links in place of its own parts, or by borrowed objects.
func (r *repository) selfContained() error {
	dir, _, err := openRoot(r.common)
	if err != nil {
		return refusal(nil, err)
	}
	defer dir.Close()
	for _, part := range []string{"HEAD", "config", "objects", "refs", "packed-refs", "objects/pack", "objects/info"} {
		info, err := dir.Lstat(part)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return refusal(dir, err)
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return outside("a part of the repository is a symbolic link")
		}
	}
	return ownObjects(dir)
}

func ownObjects(common *os.Root) error {
	content, err := pointer(common, "objects/info/alternates")
	if errors.Is(err, &wire.Error{Code: wire.CodeNoSuchFile}) {
		return nil
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(bytes.Split(content, []byte("\n")), func(line []byte) bool {
		return len(line) > 0 && line[0] != '#'
	}) {
		return &wire.Error{
			Code: wire.CodeOutsideWorkspace, Message: "the repository borrows objects of another one",
			Remedy: "copy them with git repack -a -d, then remove objects/info/alternates",
		}
	}
	return nil
}
