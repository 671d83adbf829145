package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kandev/recovery/internal/atomicfile"
)

const survivalKey = "features.agentSurvival"

// ErrNotEditable: the settings file is not one document that is a mapping, so
// that a setting cannot be written into it.
var ErrNotEditable = errors.New("the settings file cannot be edited by a program")

// Survival is features.agentSurvival as a backend that starts now would find it.
type Survival struct {
	On bool
	// OverriddenBy is the environment variable that decides whatever the file
	// says; empty if there is none.
	OverriddenBy string
}

// ReadSurvival reads all settings anew. Its errors are those of Load.
func ReadSurvival(src Source) (Survival, error) {
	settings, err := Load(src)
	if err != nil {
		return Survival{}, err
	}
	found := Survival{On: settings.AgentSurvival}
	environment, err := fromEnvironment(src.Environ)
	if err != nil {
		return Survival{}, err
	}
	if environment.Exists(survivalKey) {
		found.OverriddenBy = envOf(survivalKey)
	}
	return found, nil
}

// WriteSurvival writes the setting into the settings file, which it creates if
// there is none, and leaves all others and the comments as they are. The file is
// replaced whole; it keeps its mode, and a link stays one. It does not touch a
// file that is not valid: its errors are those of Load, ErrNotEditable, and those
// of the file system.
func WriteSurvival(src Source, on bool) error {
	settings, err := Load(src)
	if err != nil {
		return err
	}
	path, mode, err := locate(cmp.Or(settings.File, filepath.Join(settings.Home, FileName)))
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the settings file: %w", err)
	}
	edited, err := edit(content, on)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(path, edited); err != nil {
		return fmt.Errorf("write the settings file: %w", err)
	}
	return os.Chmod(path, mode)
}

// newFileMode is of a file that was not there: it may come to hold a password.
const newFileMode fs.FileMode = 0o600

// locate resolves links, and returns the mode that the file has.
func locate(path string) (string, fs.FileMode, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, newFileMode, nil
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(resolved)
	}
	if err != nil {
		return "", 0, fmt.Errorf("find the settings file: %w", err)
	}
	return resolved, info.Mode().Perm(), nil
}
