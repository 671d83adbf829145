package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kandev/recovery/internal/stack/postgrestest"
	"github.com/kandev/recovery/internal/stack/temporaltest"
)

// programs are built once for all tests: the backend with its crash points, the
// others as they are released. The example agent is the ACP SDK's own.
var programs struct{ backend, agentctl, fakeagent, example string }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "kandev-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	builds := []struct {
		path *string
		name string
		args []string
	}{
		{&programs.backend, "backend", []string{"-tags", "crashpoints", "../cmd/backend"}},
		{&programs.agentctl, "agentctl", []string{"../cmd/agentctl"}},
		{&programs.fakeagent, "fakeagent", []string{"../cmd/fakeagent"}},
		{&programs.example, "example", []string{"github.com/coder/acp-go-sdk/example/agent"}},
	}
	for _, b := range builds {
		*b.path = filepath.Join(dir, b.name)
		build := exec.Command("go", append([]string{"build", "-o", *b.path}, b.args...)...)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", b.name, err, out)
			return 1
		}
	}
	return postgrestest.Main(withTemporal{m})
}

// withTemporal runs the tests and then ends the Temporal that they shared.
type withTemporal struct{ m *testing.M }

func (w withTemporal) Run() int { return temporaltest.Main(w.m) }
