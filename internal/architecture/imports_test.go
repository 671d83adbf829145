package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/kandev/recovery/"

// rules refuse imports. A package is under a rule when its path, below the
// module, equals or lies below one of from; it must not import, not even
// through others where deep is set, what equals or lies below one of to.
var rules = []struct {
	from, to, except []string
	deep             bool
	why              string
}{
	{
		from: []string{"recovery", "agentctl/wire", "internal/credential"}, to: []string{module},
		why: "the leaves import nothing of ours, so that everything may import them",
	},
	{
		from: []string{"recovery"}, to: []string{"go.temporal.io", "github.com/jackc", "go.uber.org"}, deep: true,
		why: "decisions are pure: the standard library only",
	},
	{
		from: []string{"agentctl/acp", "agentctl/events", "agentctl/process", "agentctl/ownership", "agentctl/workspace", "agentctl/logfile"},
		to:   []string{module + "agentctl"}, except: []string{module + "agentctl/wire"},
		why: "the parts of the control server do not know each other; instance and server compose them",
	},
	{
		from: []string{"agentctl", "cmd/agentctl"}, to: []string{module + "store", "go.temporal.io", "github.com/jackc"}, deep: true,
		why: "what must outlive upgrades knows neither the database nor the workflow engine",
	},
	{
		from: []string{"agentctl/client", "agentctl/launch"}, to: []string{module + "agentctl/server", module + "agentctl/instance", module + "agentctl/ownership"}, deep: true,
		why: "a client that imports its server cannot be older than it",
	},
	{
		from: []string{"store"}, to: []string{module + "agentctl", module + "activities", module + "workflows", "go.temporal.io"},
		why: "the store knows neither the control server nor the workflow engine",
	},
	{
		from:   []string{"workflows"},
		to:     []string{module, "os", "os/exec", "net", "net/http", "math/rand", "crypto/rand", "github.com/jackc"},
		except: []string{module + "recovery", module + "activities/calls"},
		why:    "workflow code is deterministic",
	},
	{
		from: []string{"activities"}, to: []string{module + "workflows", module + "worker"}, deep: true,
		why: "activities do not know who calls them",
	},
	{
		from: []string{"activities/calls"}, to: []string{module}, except: []string{module + "recovery"},
		why: "what histories record must not drag its peers along",
	},
	{
		from: []string{"userapi"}, to: []string{module}, except: []string{module + "recovery"},
		why: "clients of the backend need its words only",
	},
	{
		from: []string{"internal/backend/api", "internal/backend/pump", "internal/backend/execution", "internal/backend/owner", "internal/backend/counters"},
		to:   []string{"go.temporal.io", module + "workflows", module + "activities", module + "worker"},
		why:  "what is alive in one boot is driven by the workflows, not the other way round",
	},
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Doc        string
	GoFiles    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps,Doc,GoFiles", module+"...")
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("go list: %s", failed.Stderr)
	}
	require.NoError(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	var all []listed
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, p)
	}
}

// within reports whether path equals one of the prefixes or lies below it.
func within(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if path == strings.TrimSuffix(p, "/") || strings.HasPrefix(path, strings.TrimSuffix(p, "/")+"/") {
			return true
		}
	}
	return false
}

func TestImportsGoOneWay(t *testing.T) {
	all := packages(t)
	for _, rule := range rules {
		matched := false
		for _, p := range all {
			name := strings.TrimPrefix(p.ImportPath, module)
			if !within(name, rule.from) {
				continue
			}
			matched = true
			imports := p.Imports
			if rule.deep {
				imports = p.Deps
			}
			for _, path := range imports {
				own := within(path, []string{p.ImportPath}) || within(p.ImportPath, []string{path})
				if within(path, rule.to) && !within(path, rule.except) && !own {
					t.Errorf("%s imports %s: %s", name, path, rule.why)
				}
			}
		}
		require.True(t, matched, "no package is under the rule for %v", rule.from)
	}
}

// Every package says what it is for.
func TestPackagesAreDescribed(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 {
			require.NotEmpty(t, p.Doc, "%s has no package comment", p.ImportPath)
		}
	}
}

// Commands are wiring: what they do is somewhere else.
func TestCommandsAreThin(t *testing.T) {
	const limit = 150
	out, err := exec.Command("go", "list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, module+"cmd/...").Output()
	require.NoError(t, err)
	for _, file := range strings.Fields(string(out)) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.LessOrEqual(t, strings.Count(string(content), "\n"), limit, "%s is too long", file)
	}
}

// W-2: nothing of the product waits by sleeping; it waits for a condition, a
// timer that can be cancelled, or an engine's retry.
func TestNothingSleeps(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, module+"...").Output()
	require.NoError(t, err)
	for _, file := range strings.Fields(string(out)) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotRegexp(t, `\b(time|workflow)\.Sleep\(`, string(content), file)
	}
}
