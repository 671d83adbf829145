// Package temporaltest gives the tests of one test binary one shared Temporal
// development server, in memory, started when the first test asks for it.
package temporaltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/stack/temporal"
)

var shared struct {
	sync.Mutex
	dir    string
	server *temporal.Server
}

// Main runs the tests and then ends the shared server; call it in TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(temporaltest.Main(m)) }
func Main(m interface{ Run() int }) int {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "temporaltest:", err)
		return max(code, 1)
	}
	return code
}

// Address returns host:port of the shared server, which it starts if needed.
// Tests keep apart by task queues and workflow ids, or by namespaces of their
// own.
func Address(t testing.TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		require.NoError(t, start(t.Context()), "start Temporal's development server")
	}
	return shared.server.Address
}

func start(ctx context.Context) error {
	program, err := Find()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "temporaltest-")
	if err != nil {
		return err
	}
	server, err := temporal.Start(ctx, temporal.Config{
		Dir: dir, Executable: program, Headless: true, EndWithParent: true, Logger: zap.NewNop(),
	})
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	shared.dir, shared.server = dir, server
	return nil
}

func stop() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return nil
	}
	err := errors.Join(shared.server.Stop(context.Background()), os.RemoveAll(shared.dir))
	shared.server = nil
	return err
}

// Find looks where the product does, and then into bin/ of the module that the
// test belongs to.
func Find() (string, error) {
	program, missing := temporal.Find()
	if missing == nil {
		return program, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			if program = filepath.Join(dir, "bin", "temporal"); isFile(program) {
				return program, nil
			}
		}
	}
	return "", missing
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
