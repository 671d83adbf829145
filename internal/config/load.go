package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

// FileName is the settings file that is read from the home directory if it is
// there and no other was named.
const FileName = "config.yaml"

// Source says where settings come from.
type Source struct {
	File       string   // named by the operator; it must be there. Empty: <home>/config.yaml, if any
	Environ    []string // "NAME=value", as os.Environ returns
	Executable string   // of this process; the control server's is sought beside it
}

// Load reads and checks all settings. Its error joins one *Rejection per
// rejected value, so that all of them can be mended at once.
func Load(src Source) (Settings, error) {
	environment, err := fromEnvironment(src.Environ)
	if err != nil {
		return Settings{}, err
	}
	settings := defaults(src.Executable)
	path, named := src.File, src.File != ""
	if !named {
		if err := apply(&settings, environment, "home"); err != nil {
			return Settings{}, err
		}
		if settings.Home == "" {
			return Settings{}, fmt.Errorf("the user has no home directory; set %s", envOf("home"))
		}
		path = filepath.Join(settings.Home, FileName)
	}
	all, found, err := fromFile(path, named)
	if err != nil {
		return Settings{}, err
	}
	if found {
		settings.File = path
	}
	if !named && all.Exists("home") {
		return Settings{}, fmt.Errorf("%s: home cannot be set in the file that was found through it; set %s or name the file", path, envOf("home"))
	}
	if err := all.Merge(environment); err != nil {
		return Settings{}, fmt.Errorf("merge settings: %w", err)
	}
	if err := check(&settings, all); err != nil {
		return Settings{}, err
	}
	return settings, nil
}

func check(settings *Settings, all *koanf.Koanf) error {
	var rejected []error
	for _, key := range all.Keys() {
		if err := apply(settings, all, key); err != nil {
			rejected = append(rejected, err)
		}
	}
	if len(rejected) == 0 {
		if err := checkReadBudget(settings.Agentctl); err != nil {
			rejected = append(rejected, err)
		}
	}
	return errors.Join(rejected...)
}

// apply sets one key, if it is there.
func apply(settings *Settings, from *koanf.Koanf, key string) error {
	if !from.Exists(key) {
		return nil
	}
	value := from.Get(key)
	at := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
	if at < 0 {
		if emptySection(key, value) {
			return nil
		}
		return unknown(key, keys())
	}
	f := fields[at]
	text, ok := scalar(value)
	if !ok || text == "" || f.set(settings, text) != nil {
		return f.reject(value)
	}
	return nil
}

// emptySection reports whether the key only opens a group of settings, all of
// which may be commented out.
func emptySection(key string, value any) bool {
	entries, isMap := value.(map[string]any)
	empty := value == nil || isMap && len(entries) == 0
	return empty && slices.ContainsFunc(fields, func(f field) bool { return strings.HasPrefix(f.key, key+".") })
}

func fromFile(path string, mustExist bool) (*koanf.Koanf, bool, error) {
	k := koanf.New(".")
	err := k.Load(file.Provider(path), yaml.Parser())
	if errors.Is(err, fs.ErrNotExist) && !mustExist {
		return k, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the settings file %s: %w", path, err)
	}
	return k, true, nil
}

// ourPrefixes begin the names of environment variables that are settings. Other
// KANDEV_ variables belong to agents and tests.
var ourPrefixes = []string{
	"KANDEV_ACP_", "KANDEV_AGENTCTL_", "KANDEV_DATABASE_", "KANDEV_FEATURES_", "KANDEV_LAUNCH_", "KANDEV_SERVER_",
}

func fromEnvironment(environ []string) (*koanf.Koanf, error) {
	var rejected []error
	k := koanf.New(".")
	err := k.Load(env.Provider(".", env.Opt{
		Prefix:      "KANDEV_",
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			for _, f := range fields {
				if f.env == name {
					return f.key, value
				}
			}
			if slices.ContainsFunc(ourPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
				rejected = append(rejected, unknown(name, environmentNames()))
			}
			return "", nil
		},
	}), nil)
	if err != nil {
		return nil, fmt.Errorf("read the environment: %w", err)
	}
	return k, errors.Join(rejected...)
}

// defaults leaves the home empty for a user without one; Load then asks for it.
func defaults(executable string) Settings {
	s := builtIn
	if user, err := os.UserHomeDir(); err == nil {
		s.Home = filepath.Join(user, ".kandev")
	}
	s.Agentctl.Executable = filepath.Join(filepath.Dir(executable), "agentctl"+filepath.Ext(executable))
	return s
}
