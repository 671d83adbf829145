package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/backend/api"
	"github.com/kandev/recovery/internal/backend/counters"
	"github.com/kandev/recovery/internal/backend/survival"
	"github.com/kandev/recovery/internal/config"
	"github.com/kandev/recovery/userapi"
)

// survivalOver starts a server without services for the capability of a fresh home.
func survivalOver(t *testing.T, available bool, reason string) *bench {
	t.Helper()
	b := &bench{}
	b.server = api.New(api.Config{
		Address: "127.0.0.1:0", Token: token, Counters: counters.New(zap.NewNop()), Logger: zap.NewNop(),
		Survival: &survival.Capability{
			Availability: func() (bool, string) { return available, reason }, Logger: zap.NewNop(),
			Source: config.Source{Environ: []string{"KANDEV_HOME=" + t.TempDir()}, Executable: "/opt/backend"},
		},
	})
	var err error
	b.address, err = b.server.Listen()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.shutdown()) })
	b.Client = userapi.NewClient("http://"+b.address, token)
	return b
}

// S-005.4, S-005.7: over the interface, also before recovery, the three states are
// told apart, and the setting is changed for the next start.
func TestSettingSurvival(t *testing.T) {
	b := survivalOver(t, true, "")
	off, on := userapi.Survival{State: userapi.SurvivalOff}, userapi.Survival{State: userapi.SurvivalOn}
	setting, err := b.Survival(t.Context())
	require.NoError(t, err)
	require.Equal(t, userapi.SurvivalSetting{InForce: off, NextStart: off}, setting)
	setting, err = b.SetSurvival(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, userapi.SurvivalSetting{InForce: off, NextStart: on}, setting)

	for body, want := range map[string]int{"{}": 422, `{"on":1}`: 400, `{"on":true,"now":true}`: 400} {
		status, _ := b.request(t, http.MethodPut, userapi.RouteSurvival, body, nil)
		require.Equal(t, want, status, body)
	}
	status, _ := b.request(t, http.MethodPut, userapi.RouteSurvival, `{"on":false}`, func(r *http.Request) { r.Header.Del("Authorization") })
	require.Equal(t, 401, status)
	setting, err = b.Survival(t.Context())
	require.NoError(t, err)
	require.Equal(t, on, setting.NextStart)
}

// S-005.4: where it is unavailable, that is said with its reason, and turning it on
// is refused with that reason as the code.
func TestSettingSurvivalWhereItIsUnavailable(t *testing.T) {
	b := survivalOver(t, false, string(userapi.CodePlatformUnsupported))
	setting, err := b.Survival(t.Context())
	require.NoError(t, err)
	require.Equal(t, userapi.Survival{State: userapi.SurvivalUnavailable, Reason: "platform_unsupported"}, setting.InForce)
	_, err = b.SetSurvival(t.Context(), true)
	refused(t, userapi.CodePlatformUnsupported, err)
	status, _ := b.request(t, http.MethodPut, userapi.RouteSurvival, `{"on":true}`, nil)
	require.Equal(t, 422, status)
	_, err = b.SetSurvival(t.Context(), false)
	require.NoError(t, err)
}
