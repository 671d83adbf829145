package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// backend is an HTTP server that answers as a backend would. Requests are kept
// as "METHOD path body".
type backend struct {
	server *httptest.Server
	mux    *http.ServeMux

	mu       sync.Mutex
	requests []string
}

func newBackend(t *testing.T) *backend {
	b := &backend{mux: http.NewServeMux()}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		if _, err := body.ReadFrom(r.Body); err != nil {
			panic(err)
		}
		b.mu.Lock()
		b.requests = append(b.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+body.String()))
		b.mu.Unlock()
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		b.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(b.server.Close)
	return b
}

func (b *backend) last() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests[len(b.requests)-1]
}

func (b *backend) answer(pattern string, v any) {
	b.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			panic(err)
		}
	})
}

func (b *backend) refuse(pattern string, e userapi.Error) {
	b.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		if err := json.NewEncoder(w).Encode(userapi.ErrorBody{Error: &e}); err != nil {
			panic(err)
		}
	})
}

// streams answers the events route with these positions, and then lets the
// stream end.
func (b *backend) streams(positions ...int64) {
	b.mux.HandleFunc("GET "+userapi.RouteEvents, func(w http.ResponseWriter, _ *http.Request) {
		for _, p := range positions {
			fmt.Fprintf(w, "id: %d\ndata: {\"position\":%d,\"kind\":\"update\",\"payload\":{\"n\":%d}}\n\n", p, p, p)
		}
	})
}

// homeOf is a home directory whose backend is b.
func homeOf(t *testing.T, b *backend) string {
	dir := filepath.Join(t.TempDir(), "home")
	h, err := home.Open(dir)
	require.NoError(t, err)
	require.NoError(t, h.WriteRuntime(home.Runtime{Address: b.server.Listener.Addr().String(), PID: os.Getpid()}))
	require.NoError(t, h.Close())
	return dir
}

func run(t *testing.T, dir string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), append([]string{"--home", dir}, args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func session() userapi.Session {
	return userapi.Session{
		ID: "s1", State: recovery.StateRunning, TaskState: recovery.TaskInProgress, Title: "a title", Position: 3,
		Agent: &userapi.Agent{PID: 4711}, Turn: &userapi.Turn{Key: "k", State: recovery.TurnOpen},
		Pending: []userapi.Permission{{RequestID: "r1", Params: json.RawMessage(`{"options":[]}`)}},
	}
}

func TestStatusAndLists(t *testing.T) {
	b := newBackend(t)
	b.answer(userapi.RouteStatus, userapi.Status{
		BootID: "boot-7", Phase: userapi.PhaseServing, Survival: userapi.Survival{State: "unavailable", Reason: "platform_unsupported"},
		Control:  &userapi.Control{ServerIdentity: "server-1", Adopted: true},
		Recovery: &userapi.RecoveryPass{WorkflowID: "adoption/x", Verdict: recovery.VerdictAdoptable, Counts: map[recovery.SessionOutcome]int{recovery.OutcomeRetracked: 5}},
	})
	b.answer("GET "+userapi.RouteSessions, map[string]any{"sessions": []userapi.Session{session()}})
	b.answer("GET "+userapi.RouteSession, session())
	b.answer("GET "+userapi.RouteHistory, map[string]any{"transitions": []userapi.Transition{{From: recovery.StateStarting, To: recovery.StateRunning, Cause: "prompt"}}})
	dir := homeOf(t, b)

	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"status"}, []string{"serving", "boot-7", "unavailable (platform_unsupported)", "adopted", "retracked", "5"}},
		{[]string{"session", "list"}, []string{"s1", "RUNNING", "IN_PROGRESS", "4711", "OPEN", "a title"}},
		{[]string{"session", "show", "s1"}, []string{"s1", "r1", "STARTING", "prompt"}},
		{[]string{"session", "show", "s1", "--json"}, []string{`"transitions"`, `"id": "s1"`}},
	} {
		code, out, errOut := run(t, dir, c.args...)
		require.Zero(t, code, errOut)
		for _, want := range c.want {
			require.Contains(t, out, want, c.args)
		}
	}
}

func TestCommandsThatChangeSomething(t *testing.T) {
	b := newBackend(t)
	b.answer("GET "+userapi.RouteSession, session())
	b.answer("POST "+userapi.RouteSessions, session())
	b.answer("PUT "+userapi.RoutePrompt, userapi.Turn{Key: "k1", State: recovery.TurnOpen})
	for _, route := range []string{"PUT " + userapi.RouteProfile, "POST " + userapi.RouteCancel, "POST " + userapi.RouteStop, "PUT " + userapi.RoutePermission} {
		b.answer(route, struct{}{})
	}
	dir := homeOf(t, b)
	workspace := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"profile", "put", "p1", "--env", "A=b", "--", "agent", "--flag"}, `PUT /api/v1/profiles/p1 {"id":"p1","agent":"p1","command":["agent","--flag"],"env":{"A":"b"}}`},
		{[]string{"session", "create", "--profile", "p1", "--workspace", workspace}, fmt.Sprintf(`POST /api/v1/sessions {"profile_id":"p1","workspace":%q}`, workspace)},
		{[]string{"session", "prompt", "s1", "--key", "k1", "do", "it"}, `PUT /api/v1/sessions/s1/prompts/k1 {"text":"do it"}`},
		{[]string{"session", "answer", "s1", "allow"}, `PUT /api/v1/sessions/s1/permissions/r1 {"option_id":"allow"}`},
		{[]string{"session", "answer", "s1", "--request", "r9", "--cancelled"}, `PUT /api/v1/sessions/s1/permissions/r9 {"cancelled":true}`},
		{[]string{"session", "cancel", "s1"}, "POST /api/v1/sessions/s1/cancel"},
		{[]string{"session", "stop", "s1"}, "POST /api/v1/sessions/s1/stop"},
	} {
		code, _, errOut := run(t, dir, c.args...)
		require.Zero(t, code, errOut)
		require.Equal(t, c.want, b.last())
	}
}

// An error says what failed, why, and what to do.
func TestErrorsHaveARemedy(t *testing.T) {
	b := newBackend(t)
	b.refuse("POST "+userapi.RouteStop, userapi.Error{Code: userapi.CodeRecovering, Message: "recovery holds the session", Remedy: "wait a moment", Retryable: true})
	dir := homeOf(t, b)
	code, _, errOut := run(t, dir, "session", "stop", "s1")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "recovery holds the session; wait a moment")
	require.Contains(t, errOut, "again later")

	code, _, errOut = run(t, dir, "session", "answer", "s1")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "--cancelled")
	code, _, errOut = run(t, dir, "session", "create", "--profile", "p", "--workspace", filepath.Join(dir, "absent"))
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "--workspace")

	b.server.Close()
	code, _, errOut = run(t, dir, "status")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "recoveryctl up")
	code, _, errOut = run(t, filepath.Join(t.TempDir(), "nowhere"), "status")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "KANDEV_HOME")
	code, _, errOut = run(t, t.TempDir(), "down")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "recoveryctl up")
}

func TestEventsEndAtTheNewest(t *testing.T) {
	b := newBackend(t)
	b.answer("GET "+userapi.RouteSession, session())
	b.streams(1, 2, 3, 4)
	code, out, errOut := run(t, homeOf(t, b), "session", "events", "s1", "--json")
	require.Zero(t, code, errOut)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 3)
}

// A follower goes on with the next backend, after the last event that it showed.
func TestFollowGoesOnWithTheNextBackend(t *testing.T) {
	first, second := newBackend(t), newBackend(t)
	first.streams(1, 2)
	second.streams(3)
	dir := homeOf(t, first)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	f := &flags{home: dir}
	var seen []int64
	err := f.follow(ctx, "s1", 0, func(e userapi.Event) error {
		seen = append(seen, e.Position)
		switch e.Position {
		case 2:
			h, err := home.Open(dir)
			if err != nil {
				return err
			}
			defer h.Close()
			return h.WriteRuntime(home.Runtime{Address: second.server.Listener.Addr().String()})
		case 3:
			cancel()
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3}, seen)
}

func TestFollowEndsAtARefusal(t *testing.T) {
	b := newBackend(t)
	b.refuse("GET "+userapi.RouteEvents, userapi.Error{Code: userapi.CodeNotFound, Message: "no such session"})
	code, _, errOut := run(t, homeOf(t, b), "session", "events", "s9", "--follow")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "no such session")
}
