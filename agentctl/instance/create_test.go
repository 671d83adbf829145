//go:build unix

package instance

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/agentctl/wire"
)

// S-002.1, S-002.14: an instance tells the session it serves, its roots, run
// id and provider session id, and nothing else of its environment.
func TestCreateStartsAnAgent(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one")

	v := a.view()
	require.Equal(t, "s-one", v.SessionID)
	require.Equal(t, "task", v.TaskID)
	require.Equal(t, int64(2), v.Generation)
	require.Equal(t, "provider-1", v.ProviderSessionID)
	require.True(t, v.Alive())
	require.Equal(t, a.request.Roots, v.Roots)
	require.Equal(t, map[string]string{wire.EnvRunID: "run-one"}, v.RunEnv)
	identity, err := process.Identity(v.PID)
	require.NoError(t, err)
	require.Equal(t, identity, v.ProcessStart)
	require.Equal(t, []string{"initialize", "new"}, a.calls())
	require.Equal(t, []wire.Instance{v.Instance}, s.List())

	startup, err := s.Startup("one")
	require.NoError(t, err)
	require.Equal(t, wire.Startup{Generation: 2, Phase: wire.PhaseReady}, startup)
}

// B-14: of the server's own environment an agent gets the named short list
// only.
func TestAgentEnvironment(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := started(t, s, "one")
	a.prompt("k", "environment")
	text := string(a.read(0, wire.EventTurnEnded)[1].Payload)
	for _, want := range []string{"LANG=C.UTF-8", "PATH=", envSessionID + "=s-one", wire.EnvRunID + "=run-one", wire.EnvInstanceMarker + "="} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "KANDEV_TEST_LEAK")
}

func TestAgentEnvPrecedence(t *testing.T) {
	env := agentEnv([]string{"PATH=/bin", "HOME=/h", "SECRET=x", "odd"}, wire.CreateRequest{
		SessionID: "s", RunID: "r",
		Env: map[string]string{"HOME": "/other", wire.EnvRunID: "forged", "TOKEN": "t"},
	})
	require.Equal(t, map[string]string{
		"PATH": "/bin", "HOME": "/other", "TOKEN": "t", envSessionID: "s", wire.EnvRunID: "r",
	}, env)
	require.Equal(t, map[string]string{wire.EnvRunID: "r"}, runEnv(env))
	require.Equal(t, map[string]string{}, runEnv(nil))
}

// B-17: many creates of one id start one process and answer the same instance;
// another request under that id is refused.
func TestCreateIsIdempotent(t *testing.T) {
	s := newTestSupervisor(t, nil)
	a := describe(t, s, "one")
	var wg sync.WaitGroup
	pids := make([]int, 50)
	errs := make([]error, 50)
	for n := range pids {
		wg.Go(func() {
			v, err := s.Create(a.id, a.request)
			pids[n], errs[n] = v.PID, err
		})
	}
	wg.Wait()
	for n := range pids {
		require.NoError(t, errs[n])
		require.Equal(t, pids[0], pids[n])
	}
	a.await(wire.InstanceReady)
	require.Equal(t, []string{"initialize", "new"}, a.calls())
	require.Len(t, s.List(), 1)

	other := a.request
	other.Generation++
	_, err := s.Create(a.id, other)
	requireCode(t, wire.CodeInstanceExists, err)
}

// B-20: what cannot be started is refused before anything is, and leaves the
// id free.
func TestCreateRefuses(t *testing.T) {
	s := newTestSupervisor(t, nil)
	for name, c := range map[string]struct {
		change func(*wire.CreateRequest)
		code   wire.Code
	}{
		"no session":            {func(r *wire.CreateRequest) { r.SessionID = "" }, wire.CodeBadRequest},
		"no mode":               {func(r *wire.CreateRequest) { r.Mode = "" }, wire.CodeBadRequest},
		"load of nothing":       {func(r *wire.CreateRequest) { r.Mode = wire.ModeLoad }, wire.CodeBadRequest},
		"new with a session":    {func(r *wire.CreateRequest) { r.ProviderSessionID = "p" }, wire.CodeBadRequest},
		"variable without name": {func(r *wire.CreateRequest) { r.Env = map[string]string{"": "x"} }, wire.CodeBadRequest},
		"variable with NUL":     {func(r *wire.CreateRequest) { r.Env = map[string]string{"A": "x\x00"} }, wire.CodeBadRequest},
		"no command":            {func(r *wire.CreateRequest) { r.Command = nil }, wire.CodeInvalidCommand},
		"unknown command":       {func(r *wire.CreateRequest) { r.Command = []string{"no-such-agent"} }, wire.CodeInvalidCommand},
		"command with NUL":      {func(r *wire.CreateRequest) { r.Command = []string{"sh", "\x00"} }, wire.CodeInvalidCommand},
		"no roots":              {func(r *wire.CreateRequest) { r.Roots = nil }, wire.CodeInvalidWorkspace},
		"relative root":         {func(r *wire.CreateRequest) { r.Roots = []string{"."} }, wire.CodeInvalidWorkspace},
		"missing root": {func(r *wire.CreateRequest) {
			r.Roots = []string{r.Roots[0], filepath.Join(r.Roots[0], "none")}
		}, wire.CodeInvalidWorkspace},
	} {
		t.Run(name, func(t *testing.T) {
			a := describe(t, s, "one")
			c.change(&a.request)
			_, err := s.Create(a.id, a.request)
			requireCode(t, c.code, err)
			require.NotContains(t, err.Error(), "/", "no path leaves the host")
			require.Empty(t, s.List())
		})
	}
	_, err := s.Create("", describe(t, s, "").request)
	requireCode(t, wire.CodeBadRequest, err)
	started(t, s, "one")
}

// B-18: the conversation is opened by exactly one call, by the method that the
// agent advertises; R-9: it is never replaced by a new one.
func TestModes(t *testing.T) {
	s := newTestSupervisor(t, nil)
	for name, c := range map[string]struct {
		mode      wire.Mode
		behaviour []string
		call      string
		loads     bool
	}{
		"load":                     {wire.ModeLoad, []string{"loads", "resumes"}, "load:p-7", true},
		"resume":                   {wire.ModeResume, []string{"loads", "resumes"}, "resume:p-7", true},
		"load where only resumed":  {wire.ModeLoad, []string{"resumes"}, "resume:p-7", false},
		"resume where only loaded": {wire.ModeResume, []string{"loads"}, "load:p-7", true},
	} {
		t.Run(name, func(t *testing.T) {
			a := describe(t, s, name, c.behaviour...)
			a.request.Mode, a.request.ProviderSessionID = c.mode, "p-7"
			a.create()
			require.Equal(t, "p-7", a.await(wire.InstanceReady).ProviderSessionID)
			require.Equal(t, []string{"initialize", c.call}, a.calls())
			startup, err := s.Startup(name)
			require.NoError(t, err)
			require.Equal(t, c.loads, startup.LoadSession)
		})
	}
}

// A start that fails is told with phase, exit code and a cause without paths;
// the instance stays listed as failed, its process gone, until it is stopped.
func TestFailedStart(t *testing.T) {
	s := newTestSupervisor(t, nil)
	three := 3
	for name, c := range map[string]struct {
		behaviour string
		mode      wire.Mode
		want      wire.Startup
		calls     []string
	}{
		"exit before initialize": {"exits", wire.ModeNew, wire.Startup{
			FailedIn: wire.PhaseInitializing, ExitCode: &three, Cause: "the agent ended before it answered",
		}, nil},
		"session not found": {"loads forgets", wire.ModeLoad, wire.Startup{
			FailedIn: wire.PhaseOpening, LoadSession: true,
			Cause: "session/load: the agent answered with error -32002: no session in [path]",
		}, []string{"initialize", "load:p-7"}},
		"no way to continue": {"", wire.ModeResume, wire.Startup{
			FailedIn: wire.PhaseOpening, Cause: "the agent can neither load nor resume a conversation",
		}, []string{"initialize"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := describe(t, s, name, c.behaviour)
			a.request.Mode = c.mode
			if c.mode != wire.ModeNew {
				a.request.ProviderSessionID = "p-7"
			}
			pid := a.create().PID
			v := a.await(wire.InstanceFailed)
			require.False(t, v.Alive())
			require.Zero(t, v.PID)
			requireGone(t, pid)
			c.want.Generation, c.want.Phase = 2, wire.PhaseFailed
			startup, err := s.Startup(name)
			require.NoError(t, err)
			require.Equal(t, c.want, startup)
			require.Equal(t, c.calls, a.calls())
			_, err = s.Prompt(name, "k", promptOf("say 1"))
			requireCode(t, wire.CodeNotReady, err)
			require.Equal(t, wire.EventAgentExited, a.read(0, wire.EventAgentExited)[0].Kind)
			a.stop(0)
			require.Empty(t, s.List())
		})
	}
}
