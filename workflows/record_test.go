package workflows_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/internal/stack/temporaltest"
	"github.com/kandev/recovery/worker"
	"github.com/kandev/recovery/workflows"
)

// recording is set by `make histories`: what is new is also written down.
func recording() bool { return os.Getenv("RECOVERY_RECORD") == "1" }

// W-6, W-2, S-002.13, S-002.15, S-003.7, R-6, W-7: every branch goes on a real
// server as it is said to, also where only that decides: attempts cut at their
// timeout are made again, a launch ends at its run timeout and is undone by its
// parent, a terminated pass's stops run on. `make histories` keeps what is
// new.
func TestBranches(t *testing.T) {
	c := dial(t)
	require.NoError(t, worker.RegisterAttributes(t.Context(), c, client.DefaultNamespace))
	for _, b := range branches() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for name, h := range run(t, newStage(b, c)) {
				checks()[name](t, h)
				replay(t, h)
				requireAnonymous(t, h.file(t))
				if recording() {
					keep(t, name, h)
				}
			}
		})
	}
}

// keep writes a history that there is none of yet. One that there is stands for
// workflows that older builds have started, and stays.
func keep(t *testing.T, name string, h history) {
	t.Helper()
	file, err := os.OpenFile(historyFile(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return
	}
	require.NoError(t, err)
	_, err = file.Write(h.file(t))
	require.NoError(t, errors.Join(err, file.Close()))
}

// dial connects to the server under an identity that names nobody.
func dial(t *testing.T) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: temporaltest.Address(t), Identity: "recorder", Logger: temporaltest.Quiet,
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// run plays a branch and returns the histories to keep, by name.
func run(t *testing.T, s *stage) map[string]history {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	serve(t, s)
	started, err := s.begin(ctx, s)
	require.NoError(t, err)
	if s.during != nil {
		require.NoError(t, s.during(ctx, s, started))
	}
	awaitEnd(ctx, t, started)
	histories := map[string]history{s.name: fetch(ctx, t, s.client, started.GetID(), started.GetRunID())}
	for _, child := range s.children {
		awaitEnd(ctx, t, s.client.GetWorkflow(ctx, child.id(s), ""))
		histories[child.name] = fetch(ctx, t, s.client, child.id(s), "")
	}
	return histories
}

// awaitEnd waits until the run has ended, in whatever way.
func awaitEnd(ctx context.Context, t *testing.T, run client.WorkflowRun) {
	t.Helper()
	err := run.Get(ctx, nil)
	var ended *temporal.WorkflowExecutionError
	if err != nil && !errors.As(err, &ended) {
		require.NoError(t, err)
	}
}

// serve polls both queues of the branch's installation until the test ends.
func serve(t *testing.T, s *stage) {
	t.Helper()
	peers := everyday(s)
	if s.peers != nil {
		for name, peer := range s.peers(s) {
			peers[name] = peer
		}
	}
	for _, queue := range []string{workflows.BootQueue(s.name, s.name), workflows.UserQueue(s.name)} {
		w := sdk.New(s.client, queue, sdk.Options{MaxConcurrentWorkflowTaskPollers: 2, MaxConcurrentActivityTaskPollers: 2})
		registerWorkflows(w)
		for name, peer := range peers {
			w.RegisterActivityWithOptions(peer, activity.RegisterOptions{Name: name})
		}
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
	t.Cleanup(func() { close(s.over) }) // runs before the workers are stopped
}

// registerWorkflows registers the product's workflows as its workers do.
func registerWorkflows(w sdk.WorkflowRegistry) {
	w.RegisterWorkflowWithOptions(workflows.Adoption, workflow.RegisterOptions{Name: workflows.TypeAdoption})
	w.RegisterWorkflowWithOptions(workflows.StopWithRetry, workflow.RegisterOptions{Name: workflows.TypeStopWithRetry})
	w.RegisterWorkflowWithOptions(workflows.GuardedResume, workflow.RegisterOptions{Name: workflows.TypeGuardedResume})
	w.RegisterWorkflowWithOptions(workflows.Launch, workflow.RegisterOptions{Name: workflows.TypeLaunch})
}
