package client_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
)

// S-002.12: an answer that cannot be understood is no answer, and above all not
// an empty one.
func TestUnreadableAnswers(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"no list":                 body(http.StatusOK, `{}`),
		"null list":               body(http.StatusOK, `{"instances":null}`),
		"not JSON":                body(http.StatusOK, `<html>`),
		"nothing":                 body(http.StatusOK, ``),
		"error without a reason":  body(http.StatusBadGateway, `bad gateway`),
		"error without a code":    body(http.StatusNotFound, `{"error":{}}`),
		"redirect":                http.RedirectHandler("https://elsewhere.example/", http.StatusTemporaryRedirect).ServeHTTP,
		"cut off in the middle":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "99") },
		"no content but a status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	} {
		t.Run(name, func(t *testing.T) {
			_, c := answering(t, handler)
			_, err := c.List(t.Context())
			require.ErrorIs(t, err, client.ErrNoAnswer)
		})
	}
}

// O-001.5, O-001.6: without an identity or a capability set, or with none that
// can be read, it is not the server expected. Empty is not missing.
func TestUnreadableIdentities(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"no identity":     body(http.StatusOK, `{"capabilities":[],"unowned_period_ms":1}`),
		"no capabilities": body(http.StatusOK, `{"server_identity":"x","unowned_period_ms":1}`),
		"not JSON":        body(http.StatusOK, `welcome`),
		"not found":       body(http.StatusNotFound, `nothing here`),
		"a refusal":       body(http.StatusForbidden, `{"error":{"code":"foreign_origin","message":""}}`),
	} {
		t.Run(name, func(t *testing.T) {
			_, c := answering(t, handler)
			_, err := c.Identity(t.Context())
			require.ErrorIs(t, err, client.ErrIdentity)
		})
	}
	_, c := answering(t, body(http.StatusOK, `{"server_identity":"x","capabilities":[],"unowned_period_ms":1}`))
	id, err := c.Identity(t.Context())
	require.NoError(t, err)
	require.Empty(t, id.Capabilities)
}

// O-002.3: a refusal is a *wire.Error, told by its code.
func TestRefusals(t *testing.T) {
	_, c := answering(t, body(http.StatusUnauthorized, `{"error":{"code":"credential_superseded","message":"m","remedy":"r"}}`))
	_, err := c.List(t.Context())
	require.ErrorIs(t, err, client.ErrSuperseded)
	require.NotErrorIs(t, err, client.ErrStopped)
	requireCode(t, wire.CodeSuperseded, err)
	_, err = c.Events(t.Context(), "i", 0)
	require.ErrorIs(t, err, client.ErrSuperseded)
}

// Ids of callers are one path segment, whatever they contain; only what needs
// no credential goes without.
func TestRequestsAsSent(t *testing.T) {
	var paths, credentials []string
	_, c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.Method+" "+r.URL.EscapedPath())
		credentials = append(credentials, r.Header.Get(wire.HeaderCredential))
		body(http.StatusOK, `{"server_identity":"x","capabilities":[]}`)(w, r)
	})
	_, err := c.Prompt(t.Context(), "../a/{key}", "k?#", wire.PromptRequest{})
	require.NoError(t, err)
	_, err = c.Identity(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"PUT /api/v1/instances/..%2Fa%2F%7Bkey%7D/turns/k%3F%23", "GET /identity"}, paths)
	require.Equal(t, []string{"Bearer " + secret, ""}, credentials)
}

// A stop may take its grace in addition to what any call may take.
func TestStopWaitsForItsGrace(t *testing.T) {
	s, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
		<-time.After(100 * time.Millisecond)
		body(http.StatusOK, `{"absent":true}`)(w, r)
	})
	c := pinning(t, s.Listener.Addr().String(), fingerprint(s), 50*time.Millisecond)
	_, err := c.Stop(t.Context(), "i", 0)
	require.ErrorIs(t, err, client.ErrNoAnswer)
	absent, err := c.Stop(t.Context(), "i", timeout)
	require.NoError(t, err)
	require.True(t, absent)
}

// An issued credential that is none is not an answer.
func TestIssuedWithoutACredential(t *testing.T) {
	_, c := answering(t, body(http.StatusOK, `{"rotation_id":1}`))
	_, err := c.Rotate(t.Context())
	require.ErrorIs(t, err, client.ErrNoAnswer)
}
