package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/backend/api"
	"github.com/kandev/recovery/userapi"
)

// request makes one request by hand and returns its status and error code.
func (b *bench) request(t *testing.T, method, path, body string, change func(*http.Request)) (int, userapi.Code) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.address+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	if change != nil {
		change(req)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if resp.StatusCode < 300 {
		return resp.StatusCode, ""
	}
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	var refusal userapi.ErrorBody
	require.NoError(t, json.Unmarshal(content, &refusal), "%s", content)
	return resp.StatusCode, refusal.Error.Code
}

// W-8: the status page answers before Postgres does; everything else says
// retryably what the backend waits for, until the services are there.
func TestBeforeServicesAreThere(t *testing.T) {
	b := listen(t)
	status, err := b.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, b.state, status)

	_, err = b.Sessions(t.Context())
	refusal := refused(t, userapi.CodeUnavailable, err)
	require.True(t, refusal.Retryable)
	require.Contains(t, refusal.Message, "Postgres")
	_, err = b.CreateSession(t.Context(), userapi.CreateSession{})
	refused(t, userapi.CodeUnavailable, err)
}

// B-11: a foreign host and any origin are refused before the token is looked at.
func TestForeignRequests(t *testing.T) {
	b := listen(t)
	_, port, err := net.SplitHostPort(b.address)
	require.NoError(t, err)
	cases := map[string]struct {
		change func(*http.Request)
		status int
	}{
		"our own address":  {nil, 200},
		"localhost":        {func(r *http.Request) { r.Host = "localhost:" + port }, 200},
		"IPv6 loopback":    {func(r *http.Request) { r.Host = "[::1]:" + port }, 200},
		"foreign host":     {func(r *http.Request) { r.Host = "example.org:" + port }, 403},
		"foreign address":  {func(r *http.Request) { r.Host = "10.0.0.1:" + port }, 403},
		"foreign port":     {func(r *http.Request) { r.Host = "127.0.0.1:1" }, 403},
		"no port":          {func(r *http.Request) { r.Host = "127.0.0.1" }, 403},
		"any origin":       {func(r *http.Request) { r.Header.Set("Origin", "http://"+b.address) }, 403},
		"empty origin":     {func(r *http.Request) { r.Header.Set("Origin", "") }, 403},
		"origin, no token": {func(r *http.Request) { r.Header.Set("Origin", "null"); r.Header.Del("Authorization") }, 403},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{userapi.RouteStatus, userapi.RouteHealth} {
				status, code := b.request(t, http.MethodGet, path, "", c.change)
				require.Equal(t, c.status, status)
				if status == 403 {
					require.Equal(t, userapi.CodeForeignOrigin, code)
				}
			}
		})
	}
}

// Every route but the liveness probe needs the token, also those that do not exist.
func TestToken(t *testing.T) {
	b := listen(t)
	for _, header := range []string{"", "Bearer ", "Bearer other", token, "Basic " + token} {
		for _, path := range []string{userapi.RouteStatus, userapi.RouteSessions, "/nothing"} {
			status, code := b.request(t, http.MethodGet, path, "", func(r *http.Request) { r.Header.Set("Authorization", header) })
			require.Equal(t, 401, status)
			require.Equal(t, userapi.CodeUnauthenticated, code)
		}
	}
	status, _ := b.request(t, http.MethodGet, userapi.RouteHealth, "", func(r *http.Request) { r.Header.Del("Authorization") })
	require.Equal(t, 200, status)
	_, err := userapi.NewClient("http://"+b.address, "other").Status(t.Context())
	refused(t, userapi.CodeUnauthenticated, err)
}

// What is not served is refused as JSON like everything else.
func TestRoutesThatDoNotExist(t *testing.T) {
	b := serve(t)
	status, code := b.request(t, http.MethodGet, "/api/v2", "", nil)
	require.Equal(t, 404, status)
	require.Equal(t, userapi.CodeNotFound, code)
	status, code = b.request(t, http.MethodDelete, userapi.RouteSessions, "", nil)
	require.Equal(t, 405, status)
	require.Equal(t, userapi.CodeBadRequest, code)
}

// Bodies are bounded, complete, and hold nothing that would be without effect.
func TestBodies(t *testing.T) {
	b := serve(t)
	for _, body := range []string{
		"", "{", "[]", `{"workspaec":"/"}`, `{} {}`, `{"title":1}`, `{"title":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		status, code := b.request(t, http.MethodPost, userapi.RouteSessions, body, nil)
		require.Equal(t, 400, status, "%.40s", body)
		require.Equal(t, userapi.CodeBadRequest, code)
	}
}

// An address that is taken is an error at once, with what to do.
func TestAddressInUse(t *testing.T) {
	b := listen(t)
	other := api.New(api.Config{Address: b.address, Logger: zap.NewNop()})
	_, err := other.Listen()
	require.ErrorContains(t, err, "server.address")
}

// Shutting down ends event streams, and lets a request that is under way finish.
func TestShutdown(t *testing.T) {
	b := serve(t)
	session, agent := b.running(t)
	updates(t, agent, 1)
	streamed, ended := make(chan struct{}, 8), make(chan error, 1)
	go func() {
		ended <- b.Events(context.Background(), session, 0, func(userapi.Event) error {
			streamed <- struct{}{}
			return nil
		})
	}()
	select {
	case <-streamed:
	case <-time.After(waitFor):
		t.Fatal("no event")
	}
	begin, release := make(chan struct{}), make(chan struct{})
	b.engine.refuse = func() error {
		close(begin)
		<-release
		return nil
	}
	created := make(chan error, 1)
	workspace := t.TempDir()
	go func() {
		_, err := b.CreateSession(context.Background(), userapi.CreateSession{ProfileID: "p", Workspace: workspace})
		created <- err
	}()
	<-begin
	down := make(chan error, 1)
	go func() { down <- b.shutdown() }()
	require.ErrorContains(t, <-ended, "ended")
	require.Empty(t, down, "a request is under way")
	close(release)
	require.NoError(t, <-created)
	require.NoError(t, <-down)
	_, err := b.Status(t.Context())
	require.Error(t, err)
}

// No answer names a path of the host, not even the workspace that the user gave.
func TestAnswersNameNoPath(t *testing.T) {
	b := serve(t)
	workspace := t.TempDir()
	s, err := b.CreateSession(t.Context(), userapi.CreateSession{ProfileID: "p", Workspace: workspace})
	require.NoError(t, err)
	for _, path := range []string{"", "/" + s.ID, "/" + s.ID + "/transitions"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.address+userapi.RouteSessions+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		var body bytes.Buffer
		_, err = io.Copy(&body, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 200, resp.StatusCode)
		require.NotContains(t, body.String(), workspace)
	}
}
