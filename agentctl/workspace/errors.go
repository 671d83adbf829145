package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/kandev/recovery/agentctl/wire"
)

func refuse(code wire.Code, message string) error {
	return &wire.Error{Code: code, Message: message}
}

func outside(message string) error {
	return &wire.Error{
		Code: wire.CodeOutsideWorkspace, Message: message,
		Remedy: "name a place inside the workspace, relative to its root",
	}
}

// refusal says an error of the file system in the words of the wire. What it
// does not know is returned without its path.
func refusal(dir *os.Root, err error) error {
	var known *wire.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case escapes(dir, err):
		return outside("a symbolic link leads out of the root")
	case errors.Is(err, fs.ErrNotExist):
		return refuse(wire.CodeNoSuchFile, "there is no such file or directory")
	case errors.Is(err, syscall.ENOTDIR):
		return refuse(wire.CodeWrongKind, "an element of the path is not a directory")
	case errors.Is(err, syscall.ELOOP):
		return refuse(wire.CodeWrongKind, "the path follows too many symbolic links")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return refuse(wire.CodeBadRequest, "the path is too long")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ETXTBSY):
		return refuse(wire.CodeFileDenied, "the operating system does not allow it")
	}
	return withoutPath(err)
}

// escapes reports whether err is how os.Root refuses to leave its directory. The
// standard library does not export that error, but gives it to who asks for the
// parent.
func escapes(dir *os.Root, err error) bool {
	if dir == nil {
		return false
	}
	_, parent := dir.Lstat("..")
	var refused *fs.PathError
	return errors.As(parent, &refused) && errors.Is(err, refused.Err)
}

// withoutPath keeps the host's paths out of errors, which are logged.
func withoutPath(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
