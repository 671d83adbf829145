//go:build unix

package postgres

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// sharedBase is where clusters lie whose directory the server's user cannot
// reach.
const sharedBase = "/var/lib/kandev"

// owner is the user that the server runs as. Other is set when that is not
// the user that we are, which takes root.
type owner struct {
	uid, gid int
	other    bool
}

func serverOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		if errUID == nil && errGID == nil && uid != 0 {
			return owner{uid: uid, gid: gid, other: true}, nil
		}
	}
	return owner{}, fmt.Errorf("postgres does not run as root, and there is no user postgres or nobody to run it as; create one")
}

// attributes give the server's programs that user and a session of their own:
// a terminal's Ctrl-C does not reach them.
func (o owner) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if o.other {
		attr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
	}
	return attr
}

// own gives a file of ours to the server's user, and refuses one that is
// somebody else's or open to others.
func (o owner) own(path string) error {
	if o.other {
		if err := os.Lchown(path, o.uid, o.gid); err != nil {
			return err
		}
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != o.uid || info.Mode().Perm()&0o077 != 0 || info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is not private to the database's user; remove it or restrict it to its owner", path)
	}
	return nil
}

// shortDir is for sockets whose directory would have too long a path.
func (o owner) shortDir() string {
	if o.other {
		return sharedBase
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return dir
	}
	return "/tmp"
}

// choosePlace creates the directory of the cluster for its user.
func choosePlace(dir string) (place, error) {
	who, err := serverOwner()
	if err != nil {
		return place{}, err
	}
	base := dir
	if who.other {
		reachable, err := who.reaches(filepath.Dir(base))
		if err != nil {
			return place{}, err
		}
		if !reachable {
			base = filepath.Join(sharedBase, hash(dir), "postgres")
		}
		// What is above the cluster's own directory has to let its user pass.
		if err := os.MkdirAll(filepath.Dir(base), 0o711); err != nil {
			return place{}, err
		}
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return place{}, err
	}
	if err := os.Chmod(base, 0o700); err != nil { // it may have been there
		return place{}, err
	}
	return place{base: base, owner: who}, who.own(base)
}

// reaches reports whether the user may pass through every directory that is
// there on the way to the path.
func (o owner) reaches(path string) (bool, error) {
	path, err := existing(path)
	if err != nil {
		return false, err
	}
	for {
		info, err := os.Stat(path)
		if err != nil {
			return false, err
		}
		if !o.passes(info) {
			return false, nil
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true, nil
		}
		path = parent
	}
}

func (o owner) passes(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return false
	case int(stat.Uid) == o.uid:
		return info.Mode().Perm()&0o100 != 0
	case int(stat.Gid) == o.gid:
		return info.Mode().Perm()&0o010 != 0
	default:
		return info.Mode().Perm()&0o001 != 0
	}
}

// existing returns the real path of the nearest ancestor that is there.
func existing(path string) (string, error) {
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real, nil
		}
		if !os.IsNotExist(err) {
			return "", err
		}
		path = filepath.Dir(path)
	}
}
