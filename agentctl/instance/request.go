package instance

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kandev/recovery/agentctl/wire"
)

// checkRequest refuses what could never be started.
func checkRequest(id string, r wire.CreateRequest) error {
	switch {
	case id == "" || r.SessionID == "":
		return refuse(wire.CodeBadRequest, "instance and session ids are required")
	case !slices.Contains([]wire.Mode{wire.ModeNew, wire.ModeLoad, wire.ModeResume}, r.Mode):
		return refuse(wire.CodeBadRequest, "unknown mode")
	case r.Mode == wire.ModeNew && r.ProviderSessionID != "":
		return refuse(wire.CodeBadRequest, "a new conversation has no provider session id yet")
	case r.Mode != wire.ModeNew && r.ProviderSessionID == "":
		return refuse(wire.CodeBadRequest, "the provider session id is required to continue a conversation")
	case len(r.Command) == 0 || r.Command[0] == "":
		return refuse(wire.CodeInvalidCommand, "the agent's command is empty")
	case slices.ContainsFunc(r.Command, hasNUL):
		return refuse(wire.CodeInvalidCommand, "the agent's command contains a NUL")
	}
	for name, value := range r.Env {
		if name == "" || strings.Contains(name, "=") || hasNUL(name) || hasNUL(value) {
			return refuse(wire.CodeBadRequest, "the environment has an invalid entry")
		}
	}
	return checkRoots(r.Roots)
}

// checkRoots accepts absolute, existing directories.
func checkRoots(roots []string) error {
	if len(roots) == 0 {
		return refuse(wire.CodeInvalidWorkspace, "at least one workspace root is required")
	}
	for _, root := range roots {
		if hasNUL(root) || !filepath.IsAbs(root) {
			return refuse(wire.CodeInvalidWorkspace, "a workspace root is not an absolute path")
		}
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return refuse(wire.CodeInvalidWorkspace, "a workspace root is not an accessible directory")
		}
	}
	return nil
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

// sameRequest reports whether a repeated create asks for the same instance
// (B-17). Nil and empty collections are equal.
func sameRequest(a, b wire.CreateRequest) bool {
	return a.SessionID == b.SessionID && a.TaskID == b.TaskID && a.Generation == b.Generation &&
		a.Mode == b.Mode && a.ProviderSessionID == b.ProviderSessionID && a.RunID == b.RunID &&
		slices.Equal(a.Command, b.Command) && slices.Equal(a.Roots, b.Roots) && maps.Equal(a.Env, b.Env)
}

func checkPrompt(key string, r wire.PromptRequest) error {
	if key == "" {
		return refuse(wire.CodeBadRequest, "a prompt needs a key")
	}
	if len(r.Blocks) == 0 {
		return refuse(wire.CodeBadRequest, "a prompt needs at least one content block")
	}
	for _, block := range r.Blocks {
		if !json.Valid(block) {
			return refuse(wire.CodeBadRequest, "a content block is not valid JSON")
		}
	}
	return nil
}
