package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// builtIn are the defaults that do not depend on the user or the program.
var builtIn = Settings{
	ServerAddress:  "127.0.0.1:38429",
	LaunchDeadline: 5 * time.Minute,
	Agentctl: Agentctl{
		Host:               "127.0.0.1",
		Port:               39429,
		RecoveryDeadline:   30 * time.Second,
		ReadTimeout:        2 * time.Second,
		ReadRetries:        2,
		UnownedPeriod:      10 * time.Minute,
		IdleTimeout:        time.Hour,
		DetachedEventLimit: 100,
	},
}

// field is one setting: its names, what is accepted in words, and the parser that
// says the same in code.
type field struct {
	key      string
	env      string
	accepted string
	secret   bool
	set      func(s *Settings, text string) error
}

const forever = time.Duration(1<<63 - 1)

var fields = []field{
	{key: "home", env: "KANDEV_HOME", accepted: "the path of a directory",
		set: func(s *Settings, v string) error { return path(&s.Home, v) }},
	{key: "database.dsn", env: "KANDEV_DATABASE_DSN", accepted: "a Postgres connection string", secret: true,
		set: func(s *Settings, v string) error { s.DatabaseDSN = Secret(v); return nil }},
	{key: "server.address", env: "KANDEV_SERVER_ADDRESS", accepted: "a loopback host and a port, such as 127.0.0.1:38429 (port 0: the system chooses)",
		set: func(s *Settings, v string) error { return loopback(&s.ServerAddress, v) }},
	{key: "features.agentSurvival", env: "KANDEV_FEATURES_AGENT_SURVIVAL", accepted: "true, on, 1, false, off or 0",
		set: func(s *Settings, v string) error { return boolean(&s.AgentSurvival, v) }},
	{key: "launch.deadline", env: "KANDEV_LAUNCH_DEADLINE", accepted: "a duration from 5s to 1h, such as 5m",
		set: func(s *Settings, v string) error {
			return duration(&s.LaunchDeadline, v, 5*time.Second, time.Hour)
		}},
	{key: "agentctl.host", env: "KANDEV_AGENTCTL_HOST", accepted: "the name or address of one host, not of all interfaces",
		set: func(s *Settings, v string) error { return host(&s.Agentctl.Host, v) }},
	{key: "agentctl.port", env: "KANDEV_AGENTCTL_PORT", accepted: "a whole number from 1 to 65535",
		set: func(s *Settings, v string) error { return whole(&s.Agentctl.Port, v, 1, 65535) }},
	{key: "agentctl.executable", env: "KANDEV_AGENTCTL_EXECUTABLE", accepted: "the path of the agentctl program",
		set: func(s *Settings, v string) error { return path(&s.Agentctl.Executable, v) }},
	{key: "agentctl.recoveryDeadline", env: "KANDEV_ACP_RECOVERY_DEADLINE", accepted: "a duration from 1s to 5m, such as 30s",
		set: func(s *Settings, v string) error {
			return duration(&s.Agentctl.RecoveryDeadline, v, time.Second, 5*time.Minute)
		}},
	{key: readTimeoutKey, env: "KANDEV_ACP_RECOVERY_READ_TIMEOUT", accepted: "a duration of at least 100ms, such as 2s",
		set: func(s *Settings, v string) error {
			return duration(&s.Agentctl.ReadTimeout, v, 100*time.Millisecond, forever)
		}},
	{key: readRetriesKey, env: "KANDEV_ACP_RECOVERY_READ_RETRIES", accepted: "a whole number from 0 to 10",
		set: func(s *Settings, v string) error { return whole(&s.Agentctl.ReadRetries, v, 0, 10) }},
	{key: "agentctl.unownedPeriod", env: "KANDEV_ACP_UNOWNED_PERIOD", accepted: "a duration that is not negative, such as 10m; the control server raises it to 1m",
		set: func(s *Settings, v string) error { return duration(&s.Agentctl.UnownedPeriod, v, 0, forever) }},
	{key: "agentctl.idleTimeout", env: "KANDEV_ACP_IDLE_TIMEOUT", accepted: "a duration that is not negative, such as 1h; 0 turns idle reaping off",
		set: func(s *Settings, v string) error { return duration(&s.Agentctl.IdleTimeout, v, 0, forever) }},
	{key: "agentctl.detachedEventLimit", env: "KANDEV_ACP_DETACHED_EVENT_LIMIT", accepted: "a whole number from 1 to 10000",
		set: func(s *Settings, v string) error { return whole(&s.Agentctl.DetachedEventLimit, v, 1, 10_000) }},
}

var errOutside = errors.New("outside of what is accepted")

// scalar returns a value of the file or the environment as text. A fraction stays
// one, so that 2.0 is not taken for a whole number.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, int, int64, uint64:
		return fmt.Sprint(v), true
	case float64:
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text, true
	default:
		return "", false
	}
}

func whole(into *int, v string, least, most int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return errOutside
	}
	*into = n
	return nil
}

func duration(into *time.Duration, v string, least, most time.Duration) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < least || d > most {
		return errOutside
	}
	*into = d
	return nil
}

func boolean(into *bool, v string) error {
	switch strings.ToLower(v) {
	case "true", "on", "1":
		*into = true
	case "false", "off", "0":
		*into = false
	default:
		return errOutside
	}
	return nil
}

// path makes a path absolute; a leading ~ is the user's home, as in a shell.
func path(into *string, v string) error {
	if rest, ok := strings.CutPrefix(v, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		user, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		v = filepath.Join(user, rest)
	}
	abs, err := filepath.Abs(v)
	if err != nil {
		return err
	}
	*into = abs
	return nil
}

func host(into *string, v string) error {
	addr, err := netip.ParseAddr(v)
	if err == nil && (addr.IsUnspecified() || addr.IsMulticast()) {
		return errOutside
	}
	if err != nil && strings.ContainsAny(v, ":/[] ") {
		return errOutside
	}
	*into = v
	return nil
}

func loopback(into *string, v string) error {
	name, port, err := net.SplitHostPort(v)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return err
	}
	if addr, err := netip.ParseAddr(name); name != "localhost" && (err != nil || !addr.IsLoopback()) {
		return errOutside
	}
	*into = v
	return nil
}
