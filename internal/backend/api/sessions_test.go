package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/backend/api"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

func TestProfiles(t *testing.T) {
	b := serve(t)
	want := userapi.Profile{ID: "claude", Agent: "claude", Command: []string{"npx", "acp"}, Env: map[string]string{"A": "b"}}
	require.NoError(t, b.PutProfile(t.Context(), want))
	stored, err := b.store.GetProfile(t.Context(), inst, "claude")
	require.NoError(t, err)
	require.Equal(t, want.Command, stored.Command)
	require.Equal(t, want.Env, stored.Env)
	status, _ := b.request(t, http.MethodGet, "/api/v1/profiles/claude", "", nil)
	require.Equal(t, 200, status)
	status, code := b.request(t, http.MethodGet, "/api/v1/profiles/other", "", nil)
	require.Equal(t, 404, status)
	require.Equal(t, userapi.CodeNotFound, code)

	for name, p := range map[string]userapi.Profile{
		"no command":       {ID: "x"},
		"no program":       {ID: "x", Command: []string{""}},
		"id with a space":  {ID: "x y", Command: []string{"a"}},
		"id too long":      {ID: strings.Repeat("x", 129), Command: []string{"a"}},
		"agent with slash": {ID: "x", Agent: "a/b", Command: []string{"a"}},
		"variable name":    {ID: "x", Command: []string{"a"}, Env: map[string]string{"A=B": "c"}},
		"NUL":              {ID: "x", Command: []string{"a\x00"}},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, userapi.CodeInvalid, b.PutProfile(t.Context(), p))
		})
	}
	_, code = b.request(t, http.MethodPut, "/api/v1/profiles/a", `{"id":"b","command":["x"]}`, nil)
	require.Equal(t, userapi.CodeInvalid, code)
}

// A session that cannot work is refused before anything is written.
func TestSessionsThatCannotWork(t *testing.T) {
	b := serve(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, req := range map[string]userapi.CreateSession{
		"no workspace":       {ProfileID: "p"},
		"relative workspace": {ProfileID: "p", Workspace: "work"},
		"missing workspace":  {ProfileID: "p", Workspace: filepath.Join(dir, "missing")},
		"file as workspace":  {ProfileID: "p", Workspace: file},
		"below a file":       {ProfileID: "p", Workspace: filepath.Join(file, "x")},
		"missing root":       {ProfileID: "p", Workspace: dir, Roots: []string{filepath.Join(dir, "missing")}},
		"no profile":         {Workspace: dir},
		"unknown profile":    {ProfileID: "other", Workspace: dir},
		"task id":            {ProfileID: "p", Workspace: dir, TaskID: "a b"},
		"long title":         {ProfileID: "p", Workspace: dir, Title: strings.Repeat("x", 501)},
		"NUL in the title":   {ProfileID: "p", Workspace: dir, Title: "a\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.CreateSession(t.Context(), req)
			require.NotEmpty(t, refused(t, userapi.CodeInvalid, err).Remedy)
		})
	}
	sessions, err := b.Sessions(t.Context())
	require.NoError(t, err)
	require.Empty(t, sessions)
	require.Empty(t, b.engine.resumes)
}

// B-20: a session keeps the canonical directory; the workspace is the first root.
// Its agent is asked for once.
func TestCreateSession(t *testing.T) {
	b := serve(t)
	workspace, root := t.TempDir(), t.TempDir()
	s, err := b.CreateSession(t.Context(), userapi.CreateSession{
		ProfileID: "p", TaskID: "task", Title: "a title",
		Workspace: symlink(t, workspace), Roots: []string{symlink(t, root), workspace},
	})
	require.NoError(t, err)
	require.Equal(t, recovery.StateCreated, s.State)
	require.Equal(t, "task", s.TaskID)
	require.Equal(t, "a title", s.Title)
	require.Equal(t, "p", s.ProfileID)
	require.Nil(t, s.Agent)
	require.Equal(t, []string{s.ID}, b.engine.resumes)

	stored, err := b.store.GetSession(t.Context(), inst, s.ID)
	require.NoError(t, err)
	require.Equal(t, workspace, stored.Workspace)
	require.Equal(t, []string{workspace, root}, stored.Roots)

	_, err = b.Session(t.Context(), "other")
	refused(t, userapi.CodeNotFound, err)
	_, err = b.Transitions(t.Context(), "other")
	refused(t, userapi.CodeNotFound, err)
}

// W-8, S-005.3: until guards are taken a session is refused retryably and not even
// created; a passthrough session is not concerned, and is started where such
// sessions live.
func TestCreateSessionBeforeGuards(t *testing.T) {
	b := listen(t)
	opened := serve(t)
	passthrough := &engine{}
	b.server.Serve(api.Services{
		Installation: inst, BootID: boot, Store: opened.store, Owner: opened.owner, Engine: opened.engine,
		Changes: opened.changes, Executions: closed(), Liveness: opened.liveness(), Passthrough: api.Host{Engine: passthrough},
	})
	req := userapi.CreateSession{ProfileID: "p", Workspace: t.TempDir()}
	_, err := b.CreateSession(t.Context(), req)
	require.True(t, refused(t, userapi.CodeRecovering, err).Retryable)
	sessions, err := b.Sessions(t.Context())
	require.NoError(t, err)
	require.Empty(t, sessions)
	req.Passthrough = true
	created, err := b.CreateSession(t.Context(), req)
	require.NoError(t, err)
	require.True(t, created.Passthrough)
	require.Equal(t, []string{created.ID}, passthrough.resumes)
	require.Empty(t, opened.engine.resumes)
}

// A session whose start could not be requested is failed, with the cause, so that
// nobody waits for it; one whose start has begun after all is not.
func TestEngineDoesNotAnswer(t *testing.T) {
	b := serve(t)
	b.engine.refuse = func() error { return api.ErrEngineUnavailable }
	req := userapi.CreateSession{ProfileID: "p", Workspace: t.TempDir()}
	_, err := b.CreateSession(t.Context(), req)
	require.True(t, refused(t, userapi.CodeUnavailable, err).Retryable)
	sessions, err := b.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, sessions, 1)
	require.Equal(t, recovery.StateFailed, sessions[0].State)
	require.NotEmpty(t, sessions[0].Cause)
	_, err = b.store.BeginStart(t.Context(), store.Start{
		Installation: inst, SessionID: sessions[0].ID, ExecutionID: "late", BootID: boot,
	})
	require.ErrorIs(t, err, store.ErrConflict, "a start that comes later finds it so")

	b.engine.refuse = func() error {
		b.begin(t, b.engine.resumes[len(b.engine.resumes)-1], "begun")
		return api.ErrEngineUnavailable
	}
	s, err := b.CreateSession(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, recovery.StateStarting, s.State)
}

// A session is shown with its agent once recovery has published it.
func TestSessionView(t *testing.T) {
	b := serve(t)
	id, _ := b.running(t)
	s, err := b.Session(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, recovery.StateWaitingForInput, s.State)
	require.Equal(t, &userapi.Agent{InstanceID: "instance-" + id, PID: 4711, Generation: 1}, s.Agent)
	require.Empty(t, s.Cause)
	require.Nil(t, s.Turn)

	rows, err := b.Transitions(t.Context(), id)
	require.NoError(t, err)
	last := rows[len(rows)-1]
	require.Equal(t, recovery.StateStarting, last.From)
	require.Equal(t, recovery.StateWaitingForInput, last.To)
	require.Equal(t, boot, last.BootID)

	unpublished := b.create(t)
	b.launch(t, unpublished.ID, "instance-2")
	b.executions.Drop(unpublished.ID)
	_, err = b.executions.TakeGuards(1, []string{unpublished.ID})
	require.NoError(t, err)
	s, err = b.Session(t.Context(), unpublished.ID)
	require.NoError(t, err)
	require.Nil(t, s.Agent)
	listed, err := b.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, listed, 2)
}

// W-7, B-22: a stop is written down before it is acted upon, a repeated one joins
// it, and it works during a start.
func TestStop(t *testing.T) {
	b := serve(t)
	s := b.create(t)
	b.begin(t, s.ID, "starting")
	require.NoError(t, b.Stop(t.Context(), s.ID))
	record, err := b.store.GetRecord(t.Context(), inst, s.ID)
	require.NoError(t, err)
	require.True(t, record.StopRequested)
	require.NoError(t, b.Stop(t.Context(), s.ID))
	want := stop{s.ID, "starting", record.StopRequestID}
	require.Equal(t, []stop{want, want}, b.engine.stops)

	b.engine.refuse = func() error { return api.ErrEngineUnavailable }
	require.True(t, refused(t, userapi.CodeUnavailable, b.Stop(t.Context(), s.ID)).Retryable)
	refused(t, userapi.CodeNotFound, b.Stop(t.Context(), "other"))
}

// B-22: a session whose start has not begun is withdrawn, and stopping what has no
// agent is done already.
func TestStopWithoutAgent(t *testing.T) {
	b := serve(t)
	s := b.create(t)
	require.NoError(t, b.Stop(t.Context(), s.ID))
	s, err := b.Session(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, recovery.StateCancelled, s.State)
	require.NoError(t, b.Stop(t.Context(), s.ID))
	require.Empty(t, b.engine.stops)
}
