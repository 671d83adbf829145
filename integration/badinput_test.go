package integration

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// O-002.4 and the bad homes: a backend that cannot act on its home says why and
// what to do, and leaves nothing behind.
func TestABackendRefusesABadHome(t *testing.T) {
	w := newWorld(t)
	w.start().serving()
	file := filepath.Join(w.dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	cases := []struct {
		name, home, says string
	}{
		{"locked", w.home, "another backend"},
		{"a file", file, "directory"},
		{"below a file", filepath.Join(file, "home"), "directory"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cmd := w.command()
			cmd.Env = append(cmd.Env, "KANDEV_HOME="+c.home)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(out), c.says)
		})
	}
	require.True(t, w.backend.answers(), "the first backend is not disturbed")
}

// A port in use is said with its setting; the home is free again afterwards.
func TestABackendRefusesAPortInUse(t *testing.T) {
	w := newWorld(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	cmd := w.command()
	cmd.Env = append(cmd.Env, "KANDEV_SERVER_ADDRESS="+taken.Addr().String())
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "in use")
	require.Contains(t, string(out), "server.address")
	w.start().serving()
}

// A schema from a newer program ends the backend with the remedy.
func TestABackendRefusesANewerSchema(t *testing.T) {
	w := newWorld(t)
	w.start().serving().kill()
	conn, err := pgx.Connect(t.Context(), w.settings["KANDEV_DATABASE_DSN"])
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `INSERT INTO schema_versions (version_id, is_applied) VALUES (9999, true)`)
	require.NoError(t, err)
	out, err := w.command().CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "newer than this program")
	_, err = conn.Exec(t.Context(), `DELETE FROM schema_versions WHERE version_id = 9999`)
	require.NoError(t, err)
}

// Requests that cannot be met are refused with what to do, and leave no session
// behind.
func TestBadRequests(t *testing.T) {
	w := newWorld(t)
	client := w.start().serving().client
	w.profile("good")
	file := filepath.Join(w.dir, "not-a-directory")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, unknown := client.Session(t.Context(), "nobody")
	_, noWorkspace := client.CreateSession(t.Context(), userapi.CreateSession{ProfileID: "good", Workspace: filepath.Join(w.dir, "absent")})
	_, fileWorkspace := client.CreateSession(t.Context(), userapi.CreateSession{ProfileID: "good", Workspace: file})
	_, noProfile := client.CreateSession(t.Context(), userapi.CreateSession{ProfileID: "absent", Workspace: w.dir})
	for name, c := range map[string]struct {
		err  error
		code userapi.Code
	}{
		"unknown session":   {unknown, userapi.CodeNotFound},
		"absent workspace":  {noWorkspace, userapi.CodeInvalid},
		"file as workspace": {fileWorkspace, userapi.CodeInvalid},
		"unknown profile":   {noProfile, userapi.CodeInvalid},
	} {
		var refusal *userapi.Error
		require.ErrorAs(t, c.err, &refusal, name)
		require.Equal(t, c.code, refusal.Code, name)
		require.NotEmpty(t, refusal.Remedy, name)
		require.NotContains(t, refusal.Error(), w.home, name)
	}
	sessions, err := client.Sessions(t.Context())
	require.NoError(t, err)
	require.Empty(t, sessions)
}

// an agent that cannot be started fails its session with the cause, at once
// and with nothing left running.
func TestAnAgentThatCannotStart(t *testing.T) {
	w := newWorld(t)
	client := w.start().serving().client
	cases := []struct {
		name, says string
		profile    userapi.Profile
	}{
		{"no such command", "command", userapi.Profile{ID: "absent", Agent: "absent", Command: []string{"/nonexistent/agent"}}},
		{"ends before initialize", "exit status 7", userapi.Profile{ID: "dies", Agent: "dies", Command: []string{"/bin/sh", "-c", "exit 7"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, client.PutProfile(t.Context(), c.profile))
			created, err := client.CreateSession(t.Context(), userapi.CreateSession{ProfileID: c.profile.ID, Workspace: w.dir})
			require.NoError(t, err)
			a := &agent{w: w, session: created.ID}
			failed := a.await("fails", func(s userapi.Session) bool { return s.State == recovery.StateFailed })
			require.Contains(t, failed.Cause, c.says)
			require.NotContains(t, failed.Cause, w.dir)
			require.Nil(t, failed.Agent)
		})
	}
}
