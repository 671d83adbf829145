package instance

import (
	"maps"
	"slices"
	"strings"

	"github.com/kandev/recovery/agentctl/wire"
)

// envSessionID tells an agent which session it serves.
const envSessionID = "KANDEV_SESSION_ID"

// inherited are the only variables of the control server's own environment
// that agents get (B-14).
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE",
	"TZ", "TERM", "TMPDIR", "SSH_AUTH_SOCK",
}

// agentEnv is the whole environment of an agent but for the marker: the
// inherited variables of base, then the request's, then our own.
func agentEnv(base []string, r wire.CreateRequest) map[string]string {
	env := map[string]string{}
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		if ok && slices.Contains(inherited, name) {
			env[name] = value
		}
	}
	maps.Copy(env, r.Env)
	env[envSessionID] = r.SessionID
	if r.RunID != "" {
		env[wire.EnvRunID] = r.RunID
	}
	return env
}

func entries(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// runEnv is what may be told of an agent's environment: the run id and nothing
// else (S-002.1).
func runEnv(env map[string]string) map[string]string {
	told := map[string]string{}
	if id, ok := env[wire.EnvRunID]; ok {
		told[wire.EnvRunID] = id
	}
	return told
}
