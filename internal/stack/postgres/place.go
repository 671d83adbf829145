package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A socket's path has to fit into 104 bytes on the narrowest platform, its name
// .s.PGSQL.5432.lock included.
const (
	socketName    = ".s.PGSQL.5432.lock"
	maxSocketPath = 100
)

// place is where the files of a cluster lie, and whose they are.
type place struct {
	base  string
	owner owner
}

func (p place) data() string { return filepath.Join(p.base, "data") }

// clusterVersion returns the major version that made the data directory, or
// "" if there is none.
func (p place) clusterVersion() string {
	text, err := os.ReadFile(filepath.Join(p.data(), "PG_VERSION"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// recordedSocket reads the socket directory of the server that runs in the
// data directory, or ran there before a crash; "" if there is no such file.
func (p place) recordedSocket() string { return p.pidFileLine(4) }

// processExists reports whether there is a process with the recorded number,
// whichever it is.
func (p place) processExists() bool {
	pid, err := strconv.Atoi(p.pidFileLine(0))
	if err != nil {
		return false
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = process.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}

// pidFileLine reads a line of the file that a server keeps in its data
// directory; "" if the file or the line is not there.
func (p place) pidFileLine(n int) string {
	text, err := os.ReadFile(filepath.Join(p.data(), "postmaster.pid"))
	if err != nil {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	if n >= len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[n])
}

// socketDir returns the private directory of the socket and creates it: beside
// the data if the path is short enough.
func (p place) socketDir() (string, error) {
	dir := filepath.Join(p.base, "run")
	if len(filepath.Join(dir, socketName)) > maxSocketPath {
		dir = filepath.Join(p.owner.shortDir(), "kandev-"+hash(p.base))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if len(filepath.Join(dir, socketName)) > maxSocketPath {
		return "", fmt.Errorf("the socket's path in %s is too long for a Unix socket", dir)
	}
	return dir, p.owner.own(dir)
}

// writeFile writes a file that the server's user can read.
func (p place) writeFile(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return p.owner.own(path)
}

// run runs one of Postgres's programs as the server's user, with nothing of
// our environment but where programs are found.
func (c *Cluster) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = c.place.base
	cmd.Env = []string{"PATH=" + string(c.binaries) + string(os.PathListSeparator) + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + c.place.base}
	cmd.SysProcAttr = c.place.owner.attributes()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
