package workflows_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/internal/stack/temporaltest"
	"github.com/kandev/recovery/recovery"
)

// checks are the checks of all histories, by name.
func checks() map[string]func(*testing.T, history) {
	all := map[string]func(*testing.T, history){}
	for _, b := range branches() {
		all[b.name] = b.check
		for _, child := range b.children {
			all[child.name] = child.check
		}
	}
	return all
}

// W-6: every recorded history is that of its branch, and the workflows of today
// replay it to the result that it recorded. A failure here means that a change
// breaks workflows which older builds have started: hide it behind
// workflow.GetVersion. Once a build is released, its histories are not recorded
// again.
func TestReplay(t *testing.T) {
	for name, check := range checks() {
		t.Run(name, func(t *testing.T) {
			h := load(t, name)
			check(t, h)
			replay(t, h)
		})
	}
}

// W-6: there is a history for every branch and a branch for every history, and
// together they end in every verdict, refusal and outcome.
func TestHistoriesAreComplete(t *testing.T) {
	files, err := filepath.Glob(historyFile("*"))
	require.NoError(t, err)
	var recorded []string
	for _, file := range files {
		recorded = append(recorded, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	var named []string
	verdicts := map[recovery.Verdict]bool{}
	reasons := map[recovery.RefusalReason]bool{}
	ended := map[recovery.SessionOutcome]bool{}
	for name := range checks() {
		named = append(named, name)
		h := load(t, name)
		if !strings.HasPrefix(name, "adoption-") || h.closed() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED {
			continue
		}
		report := result[calls.AdoptionReport](t, h)
		verdicts[report.Verdict], reasons[report.Reason] = true, true
		for _, reconciled := range inputs[calls.ReconcileInput](t, h, calls.ReconcileRecords) {
			for _, o := range reconciled.Outcomes {
				ended[o.Outcome] = true
			}
		}
	}
	require.ElementsMatch(t, named, recorded, "run `make histories` for branches that are new, and remove the files of those that are gone")
	require.ElementsMatch(t, []recovery.Verdict{
		recovery.VerdictAdoptable, recovery.VerdictFresh, recovery.VerdictRefused, recovery.VerdictIncompatible, recovery.VerdictOff,
	}, slices.Collect(maps.Keys(verdicts)))
	require.ElementsMatch(t, []recovery.RefusalReason{
		"", recovery.RefusedNoAnswer, recovery.RefusedIdentityMismatch, recovery.RefusedCredentialUnavailable,
		recovery.RefusedAuthenticationFailure, recovery.RefusedCapabilityIncompatibility, recovery.RefusedCredentialRotationFailure,
	}, slices.Collect(maps.Keys(reasons)))
	require.ElementsMatch(t, []recovery.SessionOutcome{
		recovery.OutcomeRetracked, recovery.OutcomeAgentEnded, recovery.OutcomeStale, recovery.OutcomeAmbiguous,
		recovery.OutcomeMissingValue, recovery.OutcomeReadFailed, recovery.OutcomeInstanceStopping, recovery.OutcomeUnstopped,
		recovery.OutcomeDeadline, recovery.OutcomeUnknown, recovery.OutcomeOwnedByResume, recovery.OutcomeOwnedByStop,
	}, slices.Collect(maps.Keys(ended)))
}

// W-4: a recorded history names no machine and no process of the one that
// recorded it, and is kept as it was written.
func TestHistoriesAreAnonymous(t *testing.T) {
	for name := range checks() {
		content, err := os.ReadFile(historyFile(name))
		require.NoError(t, err)
		require.Equal(t, string(load(t, name).file(t)), string(content), name)
		requireAnonymous(t, content)
	}
}

// requireAnonymous checks that a file has no trace of this machine.
func requireAnonymous(t *testing.T, content []byte) {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	dir, err := os.Getwd()
	require.NoError(t, err)
	for _, trace := range []string{"@", host + ":", dir, "workerVersion", "binaryChecksum"} {
		require.NotContains(t, string(content), trace)
	}
}

// replay runs the workflows of today on a history and compares the results. The
// run matters: a resume names the agent's execution after its own.
func replay(t *testing.T, h history) {
	t.Helper()
	seen := &witness{}
	r := newReplayer(t, seen)
	run := h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	options := sdk.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: "replayed", RunID: run}}
	require.NoError(t, r.ReplayWorkflowHistoryWithOptions(temporaltest.Quiet, h.History, options))
	if recorded := h.Events[len(h.Events)-1].GetWorkflowExecutionCompletedEventAttributes().GetResult().GetPayloads(); len(recorded) > 0 {
		replayed, err := json.Marshal(seen.result)
		require.NoError(t, err)
		require.JSONEq(t, string(recorded[0].GetData()), string(replayed))
	}
}

func newReplayer(t *testing.T, changes ...interceptor.WorkerInterceptor) sdk.WorkflowReplayer {
	t.Helper()
	r, err := sdk.NewWorkflowReplayerWithOptions(sdk.WorkflowReplayerOptions{Interceptors: changes})
	require.NoError(t, err)
	registerWorkflows(r)
	return r
}

// W-6: the replay notices what breaks running workflows: activities in another
// order, one that is gone, one that is new, and a label that is not set.
func TestReplayNoticesChanges(t *testing.T) {
	cases := map[string]struct {
		history string
		change  change
	}{
		"swapped":    {"adoption-adopted", change{rename: map[string]string{calls.TakeGuards: calls.LocateServer, calls.LocateServer: calls.TakeGuards}}},
		"late swap":  {"adoption-deadline", change{rename: map[string]string{calls.ClosePass: calls.ReconcileRecords, calls.ReconcileRecords: calls.ClosePass}}},
		"gone":       {"stop-user", change{rename: map[string]string{calls.FinishStop: ""}}},
		"new":        {"resume-agent-failed", change{twice: calls.AbandonStart}},
		"unlabelled": {"adoption-identity-mismatch", change{unlabelled: true}},
		"timed out":  {"launch-timed-out", change{twice: calls.AwaitReady}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newReplayer(t, &c.change)
			require.Error(t, r.ReplayWorkflowHistory(temporaltest.Quiet, load(t, c.history).History))
		})
	}
}
