package launch

import "strings"

// inherited are the variables that a control server gets from its backend. It
// hands them on to agents only as far as a launch says (B-14), so the list is
// what programs need to find the user's programs, files and locale.
var inherited = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true,
	"LANG": true, "LANGUAGE": true, "TZ": true, "TMPDIR": true,
	"SSH_AUTH_SOCK": true, "XDG_RUNTIME_DIR": true,
	"XDG_CONFIG_HOME": true, "XDG_DATA_HOME": true, "XDG_CACHE_HOME": true, "XDG_STATE_HOME": true,
}

// environment keeps what is on the list. Everything else stays behind, a stale
// parent pipe and the backend's own secrets among it (S-005.1).
func environment(own []string) []string {
	kept := make([]string, 0, len(inherited))
	for _, entry := range own {
		name, _, ok := strings.Cut(entry, "=")
		if ok && (inherited[name] || strings.HasPrefix(name, "LC_")) {
			kept = append(kept, entry)
		}
	}
	return kept
}
