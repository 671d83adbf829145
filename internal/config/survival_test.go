package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// at is the source of a home with that settings file; without one if it is empty.
func at(t *testing.T, yaml string, environ ...string) (src Source, file string) {
	t.Helper()
	home := t.TempDir()
	file = filepath.Join(home, FileName)
	if yaml != "" {
		require.NoError(t, os.WriteFile(file, []byte(yaml), 0o640))
	}
	return Source{Environ: append([]string{"KANDEV_HOME=" + home}, environ...), Executable: "/opt/backend"}, file
}

// S-005.7: the setting is written where the next start reads it, and everything
// else of the file stays, its comments too.
func TestWriteSurvival(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"no file":     {"", "features:\n  agentSurvival: true\n"},
		"only remark": {"# mine", "# mine\nfeatures:\n  agentSurvival: true\n"},
		"other settings": {
			"# mine\nserver:\n  address: localhost:1 # here\n",
			"# mine\nserver:\n  address: localhost:1 # here\nfeatures:\n  agentSurvival: true\n",
		},
		"other value": {
			"features:\n  # why\n  agentSurvival: off # for now\nserver:\n  address: localhost:1\n",
			"features:\n  # why\n  agentSurvival: true # for now\nserver:\n  address: localhost:1\n",
		},
		"empty section": {"features:\n", "features:\n  agentSurvival: true\n"},
		"quoted":        {"features: {agentSurvival: \"off\"}\n", "features: {agentSurvival: true}\n"},
		"one name":      {"features.agentSurvival: 0\n", "features.agentSurvival: true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			src, file := at(t, c.before)
			require.NoError(t, WriteSurvival(src, true))
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, c.after, string(content))
			for _, on := range []bool{false, true} {
				require.NoError(t, WriteSurvival(src, on))
				found, err := ReadSurvival(src)
				require.NoError(t, err)
				require.Equal(t, Survival{On: on}, found)
			}
		})
	}
}

// S-005.8: the environment wins; what is written then is said to be overridden.
func TestSurvivalOverriddenByTheEnvironment(t *testing.T) {
	src, file := at(t, "", "KANDEV_FEATURES_AGENT_SURVIVAL=on")
	require.NoError(t, WriteSurvival(src, false))
	found, err := ReadSurvival(src)
	require.NoError(t, err)
	require.Equal(t, Survival{On: true, OverriddenBy: "KANDEV_FEATURES_AGENT_SURVIVAL"}, found)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(content), "false")
}

// A file that was named is the one that is written; a link to it stays a link, and
// it keeps its mode. A new file is its owner's only.
func TestWriteSurvivalKeepsTheFileWhereItIs(t *testing.T) {
	src, file := at(t, "features:\n  agentSurvival: false\n")
	link := filepath.Join(t.TempDir(), "named.yaml")
	require.NoError(t, os.Symlink(file, link))
	src.File = link
	require.NoError(t, WriteSurvival(src, true))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, fs.ModeSymlink, info.Mode().Type())
	info, err = os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode())
	found, err := ReadSurvival(src)
	require.NoError(t, err)
	require.True(t, found.On)

	src, file = at(t, "")
	require.NoError(t, WriteSurvival(src, true))
	info, err = os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, newFileMode, info.Mode())
}

// A file that no backend would start with, or that is not understood, is left as
// it is.
func TestWriteSurvivalLeavesOtherFilesAlone(t *testing.T) {
	for name, c := range map[string]struct {
		content  string
		editable bool
	}{
		"a rejected value": {"agentctl:\n  port: 0\n", true},
		"no YAML":          {"features: [\n", true},
		"two documents":    {"server:\n  address: localhost:1\n---\nfeatures:\n  agentSurvival: true\n", false},
		"set twice":        {"features:\n  agentSurvival: off\nfeatures.agentSurvival: off\n", false},
		"set by reference": {"server: &x\n  address: localhost:1\nfeatures: *x\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			src, file := at(t, c.content)
			err := WriteSurvival(src, true)
			require.Error(t, err)
			if !c.editable {
				require.ErrorIs(t, err, ErrNotEditable)
			}
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, c.content, string(content))
		})
	}
}
