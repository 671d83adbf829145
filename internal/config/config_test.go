package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// load reads the settings of a fresh home with the YAML and the environment.
func load(t *testing.T, yaml string, environ ...string) (Settings, error) {
	t.Helper()
	home := t.TempDir()
	if yaml != "" {
		require.NoError(t, os.WriteFile(filepath.Join(home, FileName), []byte(yaml), 0o600))
	}
	return Load(Source{
		Environ:    append([]string{"KANDEV_HOME=" + home, "PATH=/bin", "KANDEV_RUN_ID=not-ours"}, environ...),
		Executable: filepath.Join("/opt/kandev", "backend"),
	})
}

// S-005.2: without any setting the capability is off, and the defaults hold.
func TestDefaults(t *testing.T) {
	s, err := load(t, "")
	require.NoError(t, err)
	require.False(t, s.AgentSurvival)
	require.Empty(t, s.DatabaseDSN)
	require.Empty(t, s.File)
	require.Equal(t, "127.0.0.1:38429", s.ServerAddress)
	require.Equal(t, 5*time.Minute, s.LaunchDeadline)
	require.Equal(t, Agentctl{
		Host: "127.0.0.1", Port: 39429, Executable: "/opt/kandev/agentctl",
		RecoveryDeadline: 30 * time.Second, ReadTimeout: 2 * time.Second, ReadRetries: 2,
		UnownedPeriod: 10 * time.Minute, IdleTimeout: time.Hour, DetachedEventLimit: 100,
	}, s.Agentctl)
}

// S-005.8: every key comes from the file and from the environment, which wins.
func TestEverySettingFromFileAndEnvironment(t *testing.T) {
	dir := t.TempDir()
	cases := []struct {
		key, env, file, environment string
		got                         func(Settings) any
		fromFile, fromEnvironment   any
	}{
		{"database.dsn", "KANDEV_DATABASE_DSN", "host=/a", "host=/b",
			func(s Settings) any { return s.DatabaseDSN.Reveal() }, "host=/a", "host=/b"},
		{"server.address", "KANDEV_SERVER_ADDRESS", "localhost:1", "'[::1]:0'",
			func(s Settings) any { return s.ServerAddress }, "localhost:1", "[::1]:0"},
		{"features.agentSurvival", "KANDEV_FEATURES_AGENT_SURVIVAL", "true", "off",
			func(s Settings) any { return s.AgentSurvival }, true, false},
		{"launch.deadline", "KANDEV_LAUNCH_DEADLINE", "5s", "1h",
			func(s Settings) any { return s.LaunchDeadline }, 5 * time.Second, time.Hour},
		{"agentctl.host", "KANDEV_AGENTCTL_HOST", "'::1'", "10.1.2.3",
			func(s Settings) any { return s.Agentctl.Host }, "::1", "10.1.2.3"},
		{"agentctl.port", "KANDEV_AGENTCTL_PORT", "1", "65535",
			func(s Settings) any { return s.Agentctl.Port }, 1, 65535},
		{"agentctl.executable", "KANDEV_AGENTCTL_EXECUTABLE", dir + "/a", dir + "/b",
			func(s Settings) any { return s.Agentctl.Executable }, dir + "/a", dir + "/b"},
		{"agentctl.recoveryDeadline", "KANDEV_ACP_RECOVERY_DEADLINE", "30s", "5m",
			func(s Settings) any { return s.Agentctl.RecoveryDeadline }, 30 * time.Second, 5 * time.Minute},
		{"agentctl.recoveryReadTimeout", "KANDEV_ACP_RECOVERY_READ_TIMEOUT", "100ms", "2s",
			func(s Settings) any { return s.Agentctl.ReadTimeout }, 100 * time.Millisecond, 2 * time.Second},
		{"agentctl.recoveryReadRetries", "KANDEV_ACP_RECOVERY_READ_RETRIES", "0", "1",
			func(s Settings) any { return s.Agentctl.ReadRetries }, 0, 1},
		{"agentctl.unownedPeriod", "KANDEV_ACP_UNOWNED_PERIOD", "1s", "1h30m",
			func(s Settings) any { return s.Agentctl.UnownedPeriod }, time.Second, 90 * time.Minute},
		{"agentctl.idleTimeout", "KANDEV_ACP_IDLE_TIMEOUT", "0", "90s",
			func(s Settings) any { return s.Agentctl.IdleTimeout }, time.Duration(0), 90 * time.Second},
		{"agentctl.detachedEventLimit", "KANDEV_ACP_DETACHED_EVENT_LIMIT", "1", "10000",
			func(s Settings) any { return s.Agentctl.DetachedEventLimit }, 1, 10_000},
	}
	require.Len(t, cases, len(fields)-1, "a new setting needs its row; home is tested below")
	for _, c := range cases {
		t.Run(c.key, func(t *testing.T) {
			group, name, _ := strings.Cut(c.key, ".")
			yaml := fmt.Sprintf("%s:\n  %s: %s\n", group, name, c.file)
			s, err := load(t, yaml)
			require.NoError(t, err)
			require.Equal(t, c.fromFile, c.got(s))
			require.NotEmpty(t, s.File)
			s, err = load(t, yaml, c.env+"="+strings.Trim(c.environment, "'"))
			require.NoError(t, err)
			require.Equal(t, c.fromEnvironment, c.got(s))
		})
	}
}

// S-001.8, S-002.13, S-003.7, S-005.8: out of range, unparsable, not whole or
// empty is rejected, naming key, variable, value and what is accepted.
func TestRejections(t *testing.T) {
	cases := map[string][]string{
		"KANDEV_DATABASE_DSN":              {""},
		"KANDEV_SERVER_ADDRESS":            {"", "127.0.0.1", "0.0.0.0:1", ":1", "example.org:1", "127.0.0.1:65536", "10.0.0.1:1"},
		"KANDEV_FEATURES_AGENT_SURVIVAL":   {"", "yes", "2"},
		"KANDEV_LAUNCH_DEADLINE":           {"", "4.9s", "61m", "300"},
		"KANDEV_AGENTCTL_HOST":             {"", "0.0.0.0", "::", "a:1", "a b", "224.0.0.1"},
		"KANDEV_AGENTCTL_PORT":             {"", "0", "65536", "1.5", "http"},
		"KANDEV_AGENTCTL_EXECUTABLE":       {""},
		"KANDEV_ACP_RECOVERY_DEADLINE":     {"", "999ms", "301s", "30", "-30s"},
		"KANDEV_ACP_RECOVERY_READ_TIMEOUT": {"", "99ms", "2", "-2s", "2s 1"},
		"KANDEV_ACP_RECOVERY_READ_RETRIES": {"", "-1", "11", "2.0", "1e0", "two", "99999999999999999999"},
		"KANDEV_ACP_UNOWNED_PERIOD":        {"", "-1s", "10"},
		"KANDEV_ACP_IDLE_TIMEOUT":          {"", "-1ns", "1"},
		"KANDEV_ACP_DETACHED_EVENT_LIMIT":  {"", "0", "10001", "99.5", "-1"},
	}
	require.Len(t, cases, len(fields)-1, "a new setting needs its row; home is tested below")
	for name, values := range cases {
		for _, value := range values {
			t.Run(name+"="+value, func(t *testing.T) {
				_, err := load(t, "", name+"="+value)
				var rejection *Rejection
				require.ErrorAs(t, err, &rejection)
				require.Equal(t, name, rejection.Env)
				require.Equal(t, value, rejection.Value)
				require.Equal(t, envOf(rejection.Key), name)
				require.Contains(t, err.Error(), rejection.Key)
				require.Contains(t, err.Error(), name)
				require.Contains(t, err.Error(), rejection.Accepted)
			})
		}
	}
}

// S-005.8: the file is validated like the environment, types of YAML included.
func TestRejectionsOfTheFile(t *testing.T) {
	for _, yaml := range []string{
		"agentctl: {recoveryReadRetries: 2.0}", "agentctl: {recoveryReadRetries: 1e1}",
		"agentctl: {recoveryReadRetries: [1]}", "agentctl: {recoveryReadRetries: {a: 1}}",
		"agentctl: {recoveryReadRetries: }", "agentctl: {recoveryReadRetries: true}",
		"agentctl: {recoveryDeadline: 30}", "agentctl: 5", "agentctl: {unknown: 1}",
		"agentctl.recoveryReadRetries: 11", "other: 1", "- a", "agentctl: {port: 1, port: 2}", "\tx: 1",
	} {
		t.Run(yaml, func(t *testing.T) {
			_, err := load(t, yaml)
			require.Error(t, err)
		})
	}
	s, err := load(t, "agentctl:\nfeatures: {}\n")
	require.NoError(t, err, "a group whose settings are all commented out")
	require.NotEmpty(t, s.File)
}

// S-002.13: all attempts of a read fit into six seconds and into a fifth of the
// configured deadline, exactly at the bound included.
func TestReadBudget(t *testing.T) {
	cases := []struct {
		deadline, timeout, retries string
		accepted                   bool
	}{
		{"30s", "2s", "2", true},
		{"30s", "2001ms", "2", false},
		{"5m", "6s", "0", true},
		{"5m", "6001ms", "0", false},
		{"5m", "600ms", "9", true},
		{"5m", "600ms", "10", false},
		{"10s", "1s", "1", true},
		{"9999ms", "1s", "1", false},
		{"1s", "100ms", "1", true},
		{"1s", "100ms", "2", false},
		{"30s", "2000000h", "10", false},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			_, err := load(t, "", "KANDEV_ACP_RECOVERY_DEADLINE="+c.deadline,
				"KANDEV_ACP_RECOVERY_READ_TIMEOUT="+c.timeout, "KANDEV_ACP_RECOVERY_READ_RETRIES="+c.retries)
			if c.accepted {
				require.NoError(t, err)
				return
			}
			var rejection *Rejection
			require.ErrorAs(t, err, &rejection)
			require.Contains(t, err.Error(), readTimeoutKey)
			require.Contains(t, err.Error(), "KANDEV_ACP_RECOVERY_READ_RETRIES")
		})
	}
	_, err := load(t, "", "KANDEV_ACP_RECOVERY_DEADLINE=10s")
	require.Error(t, err, "the defaults of the other two do not fit a deadline of 10s")
}

// All rejections are reported at once.
func TestAllRejectionsAtOnce(t *testing.T) {
	_, err := load(t, "launch: {deadline: x}\nagentctl: {port: 0}", "KANDEV_ACP_IDLE_TIMEOUT=x")
	for _, key := range []string{"launch.deadline", "agentctl.port", "agentctl.idleTimeout"} {
		require.ErrorContains(t, err, key)
	}
}

// A name that is no setting is rejected with the one that may have been meant;
// variables of agents and tests are none of ours.
func TestUnknownNames(t *testing.T) {
	var unknown *UnknownError
	_, err := load(t, "", "KANDEV_ACP_RECOVERY_DEADLIN=1s")
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "KANDEV_ACP_RECOVERY_DEADLINE", unknown.Nearest)
	_, err = load(t, "agentctl: {idletimeout: 1s}")
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "agentctl.idleTimeout", unknown.Nearest)
	_, err = load(t, "", "KANDEV_SESSION_ID=x", "KANDEV_PARENT_PIPE_FD=3", "KANDEV_CRASH_AT=x")
	require.NoError(t, err)
}

// The connection string is never printed.
func TestConnectionStringIsNotPrinted(t *testing.T) {
	s, err := load(t, "", "KANDEV_DATABASE_DSN=password=hunter2")
	require.NoError(t, err)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(format, s), "hunter2")
	}
	_, err = load(t, "database: {dsn: [hunter2]}")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

// The home comes from the environment, a named file or the user's directory, and
// never from the file that is found through it.
func TestHome(t *testing.T) {
	user := t.TempDir()
	t.Setenv("HOME", user)
	s, err := Load(Source{Executable: "/opt/backend"})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(user, ".kandev"), s.Home)

	s, err = Load(Source{Environ: []string{"KANDEV_HOME=~/other"}})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(user, "other"), s.Home)

	named := filepath.Join(t.TempDir(), "kandev.yaml")
	require.NoError(t, os.WriteFile(named, []byte("home: ~/named"), 0o600))
	s, err = Load(Source{File: named})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(user, "named"), s.Home)
	require.Equal(t, named, s.File)

	_, err = load(t, "home: /elsewhere")
	require.ErrorContains(t, err, "KANDEV_HOME")
	_, err = Load(Source{Environ: []string{"KANDEV_HOME="}})
	var rejection *Rejection
	require.ErrorAs(t, err, &rejection)
}

// A named file must be there; a file that is there must be readable.
func TestFileThatCannotBeRead(t *testing.T) {
	_, err := Load(Source{File: filepath.Join(t.TempDir(), "missing.yaml")})
	require.ErrorIs(t, err, os.ErrNotExist)
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, FileName), 0o700))
	_, err = Load(Source{Environ: []string{"KANDEV_HOME=" + home}})
	require.Error(t, err)
}
