package survival

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/config"
	"github.com/kandev/recovery/userapi"
)

const reason = "platform_unsupported"

func available() (bool, string)   { return true, "" }
func unavailable() (bool, string) { return false, reason }

// capability has a home of its own, with that settings file.
func capability(t *testing.T, inForce bool, availability func() (bool, string), yaml string, environ ...string) (*Capability, string) {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, config.FileName)
	if yaml != "" {
		require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	}
	return &Capability{
		InForce: inForce, Availability: availability, Logger: zap.NewNop(),
		Source: config.Source{Environ: append([]string{"KANDEV_HOME=" + home}, environ...), Executable: "/opt/backend"},
	}, file
}

// S-005.4: available and on, off, and unavailable whatever is set, are three, and
// an unavailable one behaves as off.
func TestState(t *testing.T) {
	for _, c := range []struct {
		inForce      bool
		availability func() (bool, string)
		want         userapi.Survival
	}{
		{true, available, userapi.Survival{State: userapi.SurvivalOn}},
		{false, available, userapi.Survival{State: userapi.SurvivalOff}},
		{true, unavailable, userapi.Survival{State: userapi.SurvivalUnavailable, Reason: reason}},
		{false, unavailable, userapi.Survival{State: userapi.SurvivalUnavailable, Reason: reason}},
	} {
		capability, _ := capability(t, c.inForce, c.availability, "")
		require.Equal(t, c.want, capability.State())
		require.Equal(t, c.want.State == userapi.SurvivalOn, capability.Active())
	}
}

// S-005.7: a change is for the next start; what is in force stays.
func TestSetActsAtTheNextStart(t *testing.T) {
	c, _ := capability(t, true, available, "")
	on, off := userapi.Survival{State: userapi.SurvivalOn}, userapi.Survival{State: userapi.SurvivalOff}
	for _, next := range []userapi.Survival{off, on, off} {
		set, err := c.Set(next == on)
		require.NoError(t, err)
		require.Equal(t, userapi.SurvivalSetting{InForce: on, NextStart: next}, set)
		read, err := c.Setting()
		require.NoError(t, err)
		require.Equal(t, set, read)
		require.True(t, c.Active())
	}
}

// An environment variable that decides is named, with what it decides.
func TestSetIsOverridden(t *testing.T) {
	c, _ := capability(t, true, available, "", "KANDEV_FEATURES_AGENT_SURVIVAL=on")
	set, err := c.Set(false)
	require.NoError(t, err)
	require.Equal(t, userapi.SurvivalOn, set.NextStart.State)
	require.Equal(t, "KANDEV_FEATURES_AGENT_SURVIVAL", set.OverriddenBy)
}

// S-005.4: where it is unavailable, turning it on is refused with the reason, and
// nothing is written; turning it off is not.
func TestUnavailableIsNotTurnedOn(t *testing.T) {
	c, file := capability(t, false, unavailable, "")
	_, err := c.Set(true)
	require.Equal(t, userapi.Code(reason), codeOf(t, err))
	require.NoFileExists(t, file)
	set, err := c.Set(false)
	require.NoError(t, err)
	require.Equal(t, userapi.SurvivalUnavailable, set.NextStart.State)
	require.Equal(t, reason, set.NextStart.Reason)
}

// A settings file that cannot be used is left alone, and no answer names it.
func TestRefusalsNameNoPath(t *testing.T) {
	for name, content := range map[string]string{"invalid": "agentctl: {port: 0}\n", "two documents": "{}\n---\n{}\n"} {
		t.Run(name, func(t *testing.T) {
			c, file := capability(t, false, available, content)
			_, err := c.Set(true)
			require.Equal(t, userapi.CodeConflict, codeOf(t, err))
			require.NotContains(t, err.Error(), filepath.Dir(file))
			kept, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, content, string(kept))
		})
	}
}

func codeOf(t *testing.T, err error) userapi.Code {
	t.Helper()
	var refusal *userapi.Error
	require.ErrorAs(t, err, &refusal)
	require.NotEmpty(t, refusal.Remedy)
	return refusal.Code
}
