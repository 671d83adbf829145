package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/userapi"
)

// S-005.4, S-005.7: the capability's three states, what is in force and what the
// next start finds, and who overrides it.
func TestAgentSurvival(t *testing.T) {
	b := newBackend(t)
	b.answer("GET "+userapi.RouteSurvival, userapi.SurvivalSetting{
		InForce:   userapi.Survival{State: userapi.SurvivalUnavailable, Reason: "platform_unsupported"},
		NextStart: userapi.Survival{State: userapi.SurvivalOff},
	})
	b.answer("PUT "+userapi.RouteSurvival, userapi.SurvivalSetting{
		InForce: userapi.Survival{State: userapi.SurvivalOff}, NextStart: userapi.Survival{State: userapi.SurvivalOn}, OverriddenBy: "A_VARIABLE",
	})
	dir := homeOf(t, b)
	for _, c := range []struct {
		args    []string
		request string
		want    []string
	}{
		{nil, "GET " + userapi.RouteSurvival, []string{"unavailable (platform_unsupported)", "off"}},
		{[]string{"on"}, "PUT " + userapi.RouteSurvival + ` {"on":true}`, []string{"next start", "A_VARIABLE"}},
		{[]string{"off"}, "PUT " + userapi.RouteSurvival + ` {"on":false}`, []string{"A_VARIABLE"}},
		{[]string{"--json"}, "GET " + userapi.RouteSurvival, []string{`"reason": "platform_unsupported"`}},
	} {
		code, out, errOut := run(t, dir, append([]string{"feature", "agent-survival"}, c.args...)...)
		require.Zero(t, code, errOut)
		require.Equal(t, c.request, b.last())
		for _, want := range c.want {
			require.Contains(t, out, want)
		}
	}
	code, _, _ := run(t, dir, "feature", "agent-survival", "maybe")
	require.Equal(t, 1, code)
}

// S-005.4: a refusal says why.
func TestAgentSurvivalIsRefused(t *testing.T) {
	b := newBackend(t)
	b.refuse("PUT "+userapi.RouteSurvival, userapi.Error{Code: userapi.CodePlatformUnsupported, Message: "not here (platform_unsupported)", Remedy: "leave it off"})
	code, _, errOut := run(t, homeOf(t, b), "feature", "agent-survival", "on")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "not here (platform_unsupported); leave it off")
}
