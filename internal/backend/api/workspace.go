package api

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kandev/recovery/userapi"
)

// directories checks the workspace and the roots, and resolves their symbolic
// links, so that a resume later runs in the very same directory (B-20). The
// workspace is always the first root: agents work in it.
func directories(workspace string, roots []string) (string, []string, error) {
	canonical, err := directory("the workspace", workspace)
	if err != nil {
		return "", nil, err
	}
	all := []string{canonical}
	for _, root := range roots {
		root, err := directory("a root", root)
		if err != nil {
			return "", nil, err
		}
		if !slices.Contains(all, root) {
			all = append(all, root)
		}
	}
	return canonical, all, nil
}

func directory(what, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", invalid(what+" is not an absolute path", "give the full path of a directory on the backend's machine")
	}
	canonical, err := filepath.EvalSymlinks(path)
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(canonical)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", invalid(what+" does not exist: "+path, "create the directory, or name one that exists")
	case err != nil:
		return "", &userapi.Error{
			Code: userapi.CodeInvalid, Message: what + " cannot be examined: " + path,
			Remedy: "make it accessible to the backend's user",
		}
	case !info.IsDir():
		return "", invalid(what+" is not a directory: "+path, "name a directory")
	}
	return canonical, nil
}
