package integration

import (
	"encoding/json"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// unattended is a control server whose backend is dead, and which the test
// talks to in its place, with the credential that it left.
type unattended struct {
	*world
	db     *store.Store
	record store.ControlServer
	server *client.Client
}

// leave kills the backend.
func leave(w *world) *unattended {
	w.t.Helper()
	w.backend.kill()
	u := &unattended{world: w, db: w.store()}
	u.dial()
	return u
}

// dial takes over the credential that the newest backend left.
func (u *unattended) dial() {
	u.t.Helper()
	var err error
	u.record, err = u.db.GetControlServer(u.t.Context(), u.installation())
	require.NoError(u.t, err)
	token, err := u.db.Credential(u.t.Context(), u.installation(), u.record.SecretRef)
	require.NoError(u.t, err)
	u.server = client.New(client.Config{
		Endpoint: u.record.Endpoint, Fingerprint: u.record.Fingerprint, Credential: token, HTTPTimeout: patience,
	})
	u.t.Cleanup(u.server.Close)
}

func (u *unattended) installation() string { return u.backend.status.Installation }

// stray starts an instance of the session that no record names, and waits until
// it is ready.
func (u *unattended) stray(session, id string, args ...string) *agent {
	u.t.Helper()
	a := &agent{w: u.world, session: session, tree: u.tree(id)}
	a.state, a.log = filepath.Join(u.dir, id+"-state"), filepath.Join(u.dir, id+"-calls")
	u.create(a, id, append([]string{programs.fakeagent}, args...))
	return a
}

func (u *unattended) create(a *agent, id string, command []string) {
	u.t.Helper()
	_, err := u.server.Create(u.t.Context(), id, wire.CreateRequest{
		SessionID: a.session, TaskID: "task", Generation: 1, Command: command, Env: a.env(),
		Roots: []string{a.tree}, Mode: wire.ModeNew, RunID: id,
	})
	require.NoError(u.t, err)
	u.eventually("instance "+id+" is ready", func() bool {
		startup, err := u.server.Startup(u.t.Context(), id)
		return err == nil && startup.Phase == wire.PhaseReady
	})
	detail, err := u.server.Get(u.t.Context(), id)
	require.NoError(u.t, err)
	a.pid = detail.PID
	u.watch(a.pid)
}

// tell prompts an instance without a backend.
func (u *unattended) tell(id, script string) {
	u.t.Helper()
	block, err := json.Marshal(map[string]string{"type": "text", "text": script})
	require.NoError(u.t, err)
	_, err = u.server.Prompt(u.t.Context(), id, "told", wire.PromptRequest{Blocks: []json.RawMessage{block}})
	require.NoError(u.t, err)
}

// instances are what the control server holds, by id.
func (u *unattended) instances() map[string]wire.Instance {
	u.t.Helper()
	listed, err := u.server.List(u.t.Context())
	require.NoError(u.t, err)
	byID := map[string]wire.Instance{}
	for _, i := range listed {
		byID[i.ID] = i
	}
	return byID
}

// descendants are the processes that the agent's scripts started.
func (a *agent) descendants() []int {
	a.w.t.Helper()
	all, err := fakeagent.ReadCalls(a.log)
	require.NoError(a.w.t, err)
	var pids []int
	for _, c := range all {
		if c.Method == fakeagent.MethodGrandchild {
			pids = append(pids, c.PID)
		}
	}
	return pids
}

// runs reports whether the agent's process of before still runs.
func (a *agent) runs() bool { return !gone(a.pid, a.w.seen[a.pid]) }

// isResumable checks that the session lost its agent and nothing else: it is
// interrupted, and resume token and worktree are kept (S-002.7).
func (u *unattended) isResumable(a *agent) {
	u.t.Helper()
	require.Equal(u.t, recovery.StateInterrupted, a.view().State)
	require.Nil(u.t, a.view().Agent)
	kept, err := u.db.GetRecord(u.t.Context(), u.installation(), a.session)
	require.NoError(u.t, err)
	require.NotEmpty(u.t, kept.ResumeToken)
	require.Empty(u.t, kept.ExecutionID)
	a.untouched()
}
