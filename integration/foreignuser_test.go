package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/demo"
	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/userapi"
)

// Users as whom the control server and the agents run that it may not signal.
// Neither exists.
const (
	serverUser = 64_501
	agentUser  = 64_502
)

// setpriv is the program by which a process changes its user; none on systems
// other than Linux.
const setpriv = "setpriv"

// canChangeUser reports whether the test may run processes as other users.
func canChangeUser() bool {
	_, err := exec.LookPath(setpriv)
	return err == nil && os.Geteuid() == 0
}

// foreignUser makes agents that the world's control server may not signal: it
// has no privileges, and they change their user by a program that has.
type foreignUser struct {
	*world
	command []string // of a fakeagent as the other user
}

func newForeignUser(w *world) *foreignUser {
	w.t.Helper()
	w.settings["KANDEV_ACP_RECOVERY_READ_TIMEOUT"], w.settings["KANDEV_ACP_RECOVERY_READ_RETRIES"] = "500ms", "1"
	program, err := exec.LookPath(setpriv)
	require.NoError(w.t, err)
	w.wrapped(fmt.Sprintf(`exec "%s" %s "%s"`, program, strings.Join(becoming(serverUser), " "), programs.agentctl))
	for _, dir := range []string{w.home, filepath.Join(w.home, "logs")} {
		require.NoError(w.t, os.Mkdir(dir, 0o700))
		require.NoError(w.t, os.Chown(dir, serverUser, serverUser))
	}
	for _, dir := range []string{w.dir, filepath.Dir(w.dir), filepath.Dir(programs.agentctl)} {
		require.NoError(w.t, os.Chmod(dir, 0o755))
	}
	privileged := filepath.Join(w.dir, setpriv)
	content, err := os.ReadFile(program)
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(privileged, content, 0o700))
	require.NoError(w.t, os.Chmod(privileged, 0o755|os.ModeSetuid))
	command := append([]string{privileged}, becoming(agentUser)...)
	return &foreignUser{world: w, command: append(command, programs.fakeagent, "--ignore-eof")}
}

func becoming(user int) []string {
	return []string{fmt.Sprintf("--reuid=%d", user), fmt.Sprintf("--regid=%d", user), "--clear-groups"}
}

// wrapped has the world start its control servers by a shell script that ends in
// "exec agentctl".
func (w *world) wrapped(script string) {
	w.t.Helper()
	path := filepath.Join(w.dir, "agentctl-wrapper")
	require.NoError(w.t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	w.settings["KANDEV_AGENTCTL_EXECUTABLE"] = path
}

// prepared makes what an agent of the user works on and writes to.
func (f *foreignUser) prepared(name string, user int) *agent {
	f.t.Helper()
	a := &agent{w: f.world, tree: f.tree(name)}
	require.NoError(f.t, os.Chmod(a.tree, 0o755))
	var err error
	a.print, err = demo.Fingerprint(a.tree)
	require.NoError(f.t, err)
	records := filepath.Join(f.dir, name+"-records")
	require.NoError(f.t, os.Mkdir(records, 0o700))
	require.NoError(f.t, os.Chown(records, user, user))
	a.state, a.log = filepath.Join(records, "state"), filepath.Join(records, "calls")
	return a
}

func (a *agent) env() map[string]string {
	return map[string]string{fakeagent.EnvState: a.state, fakeagent.EnvLog: a.log}
}

// ordinary starts a session whose agent runs as the control server's user.
func (f *foreignUser) ordinary(name string) *agent {
	f.t.Helper()
	a := f.prepared(name, serverUser)
	f.open(a, name, []string{programs.fakeagent})
	return a
}

// untouchable starts a session whose agent the control server may not signal.
func (f *foreignUser) untouchable(name string) *agent {
	f.t.Helper()
	a := f.prepared(name, agentUser)
	f.open(a, name, f.command)
	f.endAtLast(a)
	return a
}

func (f *foreignUser) open(a *agent, name string, command []string) {
	f.t.Helper()
	require.NoError(f.t, f.backend.client.PutProfile(f.t.Context(), userapi.Profile{
		ID: name, Agent: "fakeagent", Command: command, Env: a.env(),
	}))
	created, err := f.backend.client.CreateSession(f.t.Context(), userapi.CreateSession{ProfileID: name, Workspace: a.tree})
	require.NoError(f.t, err)
	a.session = created.ID
	a.ready()
}

// stray starts a further instance of a session, which the control server may not
// signal.
func (f *foreignUser) stray(u *unattended, session, id string) *agent {
	f.t.Helper()
	a := f.prepared(id, agentUser)
	a.session = session
	u.create(a, id, f.command)
	f.endAtLast(a)
	return a
}

// endAtLast has the test end the agent in place of the control server.
func (f *foreignUser) endAtLast(a *agent) {
	f.t.Cleanup(func() {
		if a.runs() {
			require.NoError(f.t, syscall.Kill(a.pid, syscall.SIGKILL))
		}
	})
}
