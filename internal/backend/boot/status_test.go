package boot

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/config"
	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/userapi"
)

// W-8: a request that comes before the first attempt to reach Postgres is told
// what is waited for, like every later one.
func TestTheFirstStatusSaysWhatIsWaitedFor(t *testing.T) {
	h, err := home.Open(filepath.Join(t.TempDir(), "home"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	first := newStatus(Config{Home: h}, userapi.Survival{}).page()
	require.Equal(t, userapi.PhaseWaitingPostgres, first.Phase)
	require.Equal(t, "Postgres", first.WaitingFor)
}

// S-005.4: where it is unavailable, a capability that is set to on is shown with
// the reason, and the control server is tied to its backend as with off.
func TestUnavailableBehavesAsOff(t *testing.T) {
	h, err := home.Open(filepath.Join(t.TempDir(), "home"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	for _, available := range []bool{true, false} {
		cfg := Config{
			Home: h, Settings: config.Settings{AgentSurvival: true},
			Availability: func() (bool, string) { return available, "platform_unsupported" },
		}
		b := &boot{cfg: cfg, survival: newSurvival(cfg)}
		require.Equal(t, available, b.startConfig().Detached)
		shown := newStatus(cfg, b.survival.State()).page().Survival
		if !available {
			require.Equal(t, userapi.Survival{State: userapi.SurvivalUnavailable, Reason: "platform_unsupported"}, shown)
		}
	}
}
