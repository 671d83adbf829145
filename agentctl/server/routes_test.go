package server_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// S-002.1, S-002.14, B-17, S-004.1, S-004.6: the real client against the real
// handler, over every route of an instance's life.
func TestInstanceRoutes(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	ctx := t.Context()

	list, err := c.List(ctx)
	require.NoError(t, err)
	require.Empty(t, list)

	request := agentRequest(t, nil)
	created, err := c.Create(ctx, "i 1/ü", request)
	require.NoError(t, err)
	again, err := c.Create(ctx, "i 1/ü", request)
	require.NoError(t, err)
	require.Equal(t, created.PID, again.PID, "one agent for one id")
	other := request
	other.SessionID = "another"
	_, err = c.Create(ctx, "i 1/ü", other)
	requireCode(t, wire.CodeInstanceExists, err)
	require.Eventually(t, func() bool {
		startup, err := c.Startup(ctx, "i 1/ü")
		return err == nil && startup.Phase == wire.PhaseReady && startup.LoadSession
	}, deadline, 5*time.Millisecond)

	list, err = c.List(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "session-1", list[0].SessionID)
	require.Equal(t, "provider-1", list[0].ProviderSessionID)
	detail, err := c.Get(ctx, "i 1/ü")
	require.NoError(t, err)
	require.Equal(t, request.Roots, detail.Roots)
	require.Equal(t, map[string]string{wire.EnvRunID: "run-1"}, detail.RunEnv)

	requireCode(t, wire.CodeNoTurn, c.Cancel(ctx, "i 1/ü"))
	turn, err := c.Prompt(ctx, "i 1/ü", "key/1", say("hello"))
	require.NoError(t, err)
	same, err := c.Prompt(ctx, "i 1/ü", "key/1", say("hello"))
	require.NoError(t, err)
	require.Equal(t, turn.TurnID, same.TurnID)

	var kept wire.KeptOutcome
	require.Eventually(t, func() bool {
		kept, err = c.TurnOutcome(ctx, "i 1/ü")
		return err == nil && kept.Outcome != nil
	}, deadline, 5*time.Millisecond)
	require.Equal(t, turn.TurnID, kept.Outcome.TurnID)
	require.Equal(t, "end_turn", kept.Outcome.StopReason)
	require.NoError(t, c.AckTurnOutcome(ctx, "i 1/ü", "another-turn"))
	kept, err = c.TurnOutcome(ctx, "i 1/ü")
	require.NoError(t, err)
	require.NotNil(t, kept.Outcome)
	require.NoError(t, c.AckTurnOutcome(ctx, "i 1/ü", turn.TurnID))
	kept, err = c.TurnOutcome(ctx, "i 1/ü")
	require.NoError(t, err)
	require.Nil(t, kept.Outcome)

	_, err = c.Prompt(ctx, "i 1/ü", "key-2", say("wait"))
	require.NoError(t, err)
	_, err = c.Prompt(ctx, "i 1/ü", "key-3", say("hello"))
	requireCode(t, wire.CodeTurnOpen, err)
	require.NoError(t, c.Cancel(ctx, "i 1/ü"))

	absent, err := c.Stop(ctx, "i 1/ü", time.Second)
	require.NoError(t, err)
	require.False(t, absent)
	absent, err = c.Stop(ctx, "i 1/ü", time.Second)
	require.NoError(t, err)
	require.True(t, absent)
	_, err = c.Create(ctx, "i 1/ü", request)
	require.ErrorIs(t, err, client.ErrStopped)
	_, err = c.Get(ctx, "i 1/ü")
	requireCode(t, wire.CodeNotFound, err)
}

// B-11: a foreign Host or any Origin is refused on every route, before
// authentication and before anything is done.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	raw := rawHTTP(t, r)
	_, port, _ := strings.Cut(r.Endpoint(), ":")
	for _, route := range allRoutes {
		for name, change := range map[string]func(*http.Request){
			"origin":       func(q *http.Request) { q.Header.Set("Origin", "https://"+r.Endpoint()) },
			"empty origin": func(q *http.Request) { q.Header["Origin"] = []string{""} },
			"host":         func(q *http.Request) { q.Host = "attacker.example:" + port },
			"port":         func(q *http.Request) { q.Host = "127.0.0.1:1" },
			"no port":      func(q *http.Request) { q.Host = "127.0.0.1" },
		} {
			require.Equal(t, wire.CodeForeignOrigin, raw.send(t, route.name, "", "", change), "%s: %s", route.name, name)
		}
	}
	for _, host := range []string{"localhost:" + port, "LOCALHOST:" + port, "[::1]:" + port} {
		code := raw.send(t, "GET "+wire.RouteHealth, "", "", func(q *http.Request) { q.Host = host })
		require.Empty(t, code, host)
	}
}

// The tests that go through all routes go through those that the server has.
func TestNoRouteIsForgotten(t *testing.T) {
	t.Parallel()
	var known []string
	for _, route := range allRoutes {
		pattern, _, _ := strings.Cut(route.name, "?")
		known = append(known, pattern)
	}
	require.ElementsMatch(t, start(t, time.Now).Patterns(), known)
}

// O-002.3, O-002.7: who may call what.
func TestTiers(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	owner, superseded := r.own(t)
	newest, err := owner.Rotate(t.Context())
	require.NoError(t, err)
	raw := rawHTTP(t, r)

	for _, route := range allRoutes {
		if route.tier == anybody {
			continue
		}
		for _, header := range []string{"", "Bearer", "Bearer stranger", newest.Credential, "Basic " + newest.Credential} {
			require.Equal(t, wire.CodeUnauthenticated, raw.send(t, route.name, header, ""), route.name)
		}
		if route.tier == newestOnly {
			require.Equal(t, wire.CodeSuperseded, raw.send(t, route.name, "Bearer "+superseded, ""), route.name)
		}
	}
	require.Equal(t, wire.CodeNotFound, raw.send(t, "POST /api/v1/nothing", "", ""))
	require.Equal(t, wire.CodeNotFound, raw.send(t, "PATCH "+wire.RouteInstances, "", ""))
}

// O-001.11: the identity has exactly three fields, and the rest needs the
// credential.
func TestIdentityAndDetails(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	owner, _ := r.own(t)
	body := rawHTTP(t, r).body(t, "GET "+wire.RouteIdentity)
	require.Len(t, body, 3)
	require.Equal(t, identity, body["server_identity"])
	require.Equal(t, float64(time.Hour.Milliseconds()), body["unowned_period_ms"])
	require.Len(t, body["capabilities"], len(wire.Capabilities()))
	require.Empty(t, rawHTTP(t, r).body(t, "GET "+wire.RouteHealth))

	details, err := owner.Details(t.Context())
	require.NoError(t, err)
	require.Equal(t, home, details.Home)
	require.Equal(t, logPath, details.DiagnosticLogPath)
	require.Equal(t, []string{"one"}, details.Adjustments)
	require.NotZero(t, details.PID)
}

// O-001.11: without a credential no route tells a path of the host, whether it
// answers or refuses.
func TestNoPathWithoutACredential(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	owner, _ := r.own(t)
	createReady(t, owner, "i", nil)
	detail, err := owner.Get(t.Context(), "i")
	require.NoError(t, err)
	proven, err := json.Marshal(wire.ProveRequest{
		Challenge: base64.StdEncoding.EncodeToString(credential.NewChallenge()), RotationID: 1, Endpoint: r.Endpoint(),
	})
	require.NoError(t, err)
	raw := rawHTTP(t, r)
	for _, pattern := range r.Patterns() {
		for _, presented := range []string{"", "Bearer stranger"} {
			for _, body := range []string{"", "{", "{}", string(proven)} {
				status, answer := raw.do(t, pattern, presented, body)
				for _, path := range append([]string{home, logPath}, detail.Roots...) {
					require.NotContains(t, string(answer), path, "%s: %d", pattern, status)
				}
			}
		}
	}
}

// Requests that are no good are refused by what is wrong with them.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	_, token := r.own(t)
	raw := rawHTTP(t, r)
	credential := "Bearer " + token
	require.Equal(t, wire.CodeBadRequest, raw.send(t, "PUT "+wire.RouteInstance, credential, "{"))
	require.Equal(t, wire.CodeBadRequest, raw.send(t, "DELETE "+wire.RouteInstance, credential, `{"grace_ms":-1}`))
	require.Equal(t, wire.CodeBadRequest, raw.send(t, "DELETE "+wire.RouteInstance, credential, `{"grace_ms":600001}`))
	require.Equal(t, wire.CodeBadRequest, raw.send(t, "DELETE "+wire.RouteInstance, credential, "null"))
	require.Equal(t, wire.CodeTooLarge,
		raw.send(t, "PUT "+wire.RouteInstance, credential, `"`+strings.Repeat("x", wire.MaxRequestBytes)+`"`))
	require.Equal(t, wire.CodeBadRequest, raw.send(t, "POST "+wire.RouteProve, "", `{"challenge":"AAAA"}`))
	require.Equal(t, wire.CodeBadRequest, raw.send(t, "GET "+wire.RouteEvents, credential, ""))
	require.Empty(t, raw.send(t, "DELETE "+wire.RouteInstance, credential, `{"grace_ms":1,"a_newer_field":true}`))
}
