package server_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// tier is who may call a route.
type tier int

const (
	anybody tier = iota
	acceptable
	newestOnly
)

// allRoutes are the routes that exist.
var allRoutes = []struct {
	name string
	tier tier
}{
	{"GET " + wire.RouteHealth, anybody},
	{"GET " + wire.RouteIdentity, anybody},
	{"POST " + wire.RouteHandshake, anybody},
	{"POST " + wire.RouteProve, anybody},
	{"POST " + wire.RouteConfirm, newestOnly},
	{"POST " + wire.RouteClaim, newestOnly},
	{"GET " + wire.RouteDetails, newestOnly},
	{"GET " + wire.RouteMemory, newestOnly},
	{"GET " + wire.RouteInstances, newestOnly},
	{"PUT " + wire.RouteInstance, newestOnly},
	{"GET " + wire.RouteInstance, newestOnly},
	{"DELETE " + wire.RouteInstance, newestOnly},
	{"GET " + wire.RouteEvents + "?after=0", newestOnly},
	{"PUT " + wire.RouteTurn, newestOnly},
	{"POST " + wire.RouteCancel, newestOnly},
	{"POST " + wire.RoutePermission, newestOnly},
	{"GET " + wire.RouteTurnOutcome, newestOnly},
	{"POST " + wire.RouteAckOutcome, newestOnly},
	{"GET " + wire.RouteStartup, newestOnly},
	{"GET " + wire.RouteFiles, newestOnly},
	{"GET " + wire.RouteFileContent, newestOnly},
	{"PUT " + wire.RouteFileContent, newestOnly},
	{"GET " + wire.RouteGitStatus, newestOnly},
	{"GET " + wire.RouteGitDiff, newestOnly},
	{"GET " + wire.RouteGitLog, newestOnly},
	{"POST " + wire.RouteRotate, acceptable},
	{"POST " + wire.RouteShutdown, acceptable},
}

// rawClient sends what the real client would not.
type rawClient struct {
	http     *http.Client
	endpoint string
}

func rawHTTP(t testing.TB, r *running) rawClient {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return rawClient{http: &http.Client{Transport: transport}, endpoint: r.Endpoint()}
}

// send makes a request of the route, and returns the code of its refusal.
func (c rawClient) send(
	t *testing.T, route, credential, body string, changes ...func(*http.Request),
) wire.Code {
	t.Helper()
	status, raw := c.do(t, route, credential, body, changes...)
	var refusal wire.ErrorBody
	require.NoError(t, json.Unmarshal(raw, &refusal), "%s: %s", route, raw)
	if refusal.Error == nil {
		require.Equal(t, http.StatusOK, status)
		return ""
	}
	require.Equal(t, refusal.Error.Code.Status(), status)
	return refusal.Error.Code
}

func (c rawClient) body(t *testing.T, route string) map[string]any {
	t.Helper()
	_, raw := c.do(t, route, "", "")
	var body map[string]any
	require.NoError(t, json.Unmarshal(raw, &body))
	return body
}

func (c rawClient) do(
	t *testing.T, route, credential, body string, changes ...func(*http.Request),
) (int, []byte) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	path = strings.NewReplacer("{id}", "i", "{key}", "k", "{rid}", "r").Replace(path)
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+c.endpoint+path, strings.NewReader(body))
	require.NoError(t, err)
	if credential != "" {
		request.Header.Set(wire.HeaderCredential, credential)
	}
	for _, change := range changes {
		change(request)
	}
	response, err := c.http.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, raw
}

func requireCode(t *testing.T, want wire.Code, err error) {
	t.Helper()
	var refusal *wire.Error
	require.True(t, errors.As(err, &refusal), "%v", err)
	require.Equal(t, want, refusal.Code)
}
