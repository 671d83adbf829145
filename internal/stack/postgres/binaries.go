package postgres

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// ErrMissing: no Postgres server was found. Its text has the remedy.
var ErrMissing = errors.New("no Postgres server was found; install one (Debian, Ubuntu: apt-get install postgresql; " +
	"Fedora: dnf install postgresql-server; macOS: brew install postgresql@17), or set database.dsn to a running one")

// Missing returns what to do when no Postgres server is installed, else "".
func Missing() string {
	if _, err := findBinaries(usualPlaces, ""); err != nil {
		return err.Error()
	}
	return ""
}

// binaries is a directory that holds initdb, pg_ctl and postgres.
type binaries string

func (b binaries) initdb() string { return b.path("initdb") }
func (b binaries) pgctl() string  { return b.path("pg_ctl") }

func (b binaries) path(name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(string(b), name)
}

// complete reports whether all three are there.
func (b binaries) complete() bool {
	for _, name := range []string{"initdb", "pg_ctl", "postgres"} {
		if info, err := os.Stat(b.path(name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

var usualPlaces = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/usr/lib64/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin", "/usr/bin",
	`C:\Program Files\PostgreSQL\*\bin`,
}

// findBinaries looks on PATH, then in the places, newest first. A cluster
// can be run by its own major version only: with one given, others do not do.
func findBinaries(places []string, major string) (binaries, error) {
	var found []binaries
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		found = append(found, binaries(filepath.Dir(path)))
	}
	for _, pattern := range places {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		slices.Reverse(dirs)
		for _, dir := range dirs {
			found = append(found, binaries(dir))
		}
	}
	for _, b := range found {
		if b.complete() && (major == "" || b.major() == major) {
			return b, nil
		}
	}
	if major != "" {
		return "", errors.New("the private cluster needs Postgres " + major + ", which is not installed; install it beside the newer one")
	}
	return "", ErrMissing
}

var versionNumber = regexp.MustCompile(`\s(\d+)`)

// major asks the server for its version; "" if it does not tell.
func (b binaries) major() string {
	out, err := exec.Command(b.path("postgres"), "--version").Output()
	if err != nil {
		return ""
	}
	match := versionNumber.FindStringSubmatch(strings.TrimSpace(string(out)))
	if match == nil {
		return ""
	}
	return match[1]
}
