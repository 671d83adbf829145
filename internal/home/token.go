package home

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kandev/recovery/internal/atomicfile"
	"github.com/kandev/recovery/internal/credential"
)

// ensureToken reads the API token, or makes one.
func ensureToken(path string) (string, error) {
	token, found, err := readToken(path)
	if err != nil || found {
		return token, err
	}
	token = credential.NewToken()
	return token, atomicfile.Write(path, []byte(token+"\n"))
}

func readToken(path string) (token string, found bool, err error) {
	content, found, err := readFile(path)
	if err != nil || !found {
		return "", found, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", false, err
	}
	if readableByOthers(info.Mode()) {
		return "", false, fmt.Errorf("%w: %s; delete it, and the backend makes a new one", ErrUnsafeFile, path)
	}
	token = strings.TrimSpace(string(content))
	if token == "" {
		return "", false, fmt.Errorf("%w: %s is empty; delete it, and the backend makes a new token", ErrNotUsable, path)
	}
	return token, true, nil
}

// ReadToken reads the API token of the home at path, without opening it. Before
// a backend ever ran there it is ErrNotRunning.
func ReadToken(path string) (string, error) {
	token, found, err := readToken(filepath.Join(path, tokenFile))
	if err == nil && !found {
		err = fmt.Errorf("%w in %s; start one, or set KANDEV_HOME", ErrNotRunning, path)
	}
	return token, err
}
