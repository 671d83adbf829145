package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The control server is thin, and stays so: a module that it did not need yet
// is added to the list on purpose, or not at all.
func TestDependencies(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	list.Env = append(os.Environ(), "GOOS=linux")
	raw, err := list.Output()
	require.NoError(t, err)
	modules := strings.Fields(string(raw))
	slices.Sort(modules)
	modules = slices.Compact(modules)

	committed, err := os.ReadFile("../../agentctl/dependencies.txt")
	require.NoError(t, err)
	require.Equal(t, strings.Fields(string(committed)), modules)
}
