//go:build unix

package process

import (
	"os"
	"path/filepath"
	"strings"
)

// findCommand resolves the command in the environment that the process will
// have, not in ours. Relative entries of PATH are passed over: they would find
// programs in the workspace.
func findCommand(spec Spec) (string, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return "", ErrCommandNotFound
	}
	name := spec.Argv[0]
	if strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(spec.Dir, name)
		}
		if !isExecutable(name) {
			return "", ErrCommandNotFound
		}
		return name, nil
	}
	for _, dir := range filepath.SplitList(variable(spec.Env, "PATH")) {
		if path := filepath.Join(dir, name); filepath.IsAbs(dir) && isExecutable(path) {
			return path, nil
		}
	}
	return "", ErrCommandNotFound
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// variable returns the last value of a variable, the one that counts.
func variable(env []string, name string) string {
	value := ""
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
