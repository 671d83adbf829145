package worker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/internal/stack/temporaltest"
	"github.com/kandev/recovery/workflows"
)

// W-3, W-2: a new boot's pass takes the place of one that still runs: the old
// run is terminated, and the new one is another run.
func TestANewAdoptionReplacesTheRunningOne(t *testing.T) {
	c, _ := temporaltest.Namespace(t)
	e := testEngine(t, c)
	first, err := e.StartAdoption(t.Context(), 1, true)
	require.NoError(t, err)
	second, err := (&Engine{Client: c, Installation: e.Installation, BootID: "next", Budgets: e.Budgets}).StartAdoption(t.Context(), 1, true)
	require.NoError(t, err)
	require.NotEqual(t, first.GetRunID(), second.GetRunID())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var ended *temporal.TerminatedError
	require.ErrorAs(t, c.GetWorkflow(ctx, first.GetID(), first.GetRunID()).Get(ctx, nil), &ended)
	described, err := c.DescribeWorkflow(ctx, second.GetID(), "")
	require.NoError(t, err)
	require.Equal(t, second.GetRunID(), described.WorkflowExecution.RunID)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, described.Status)
}

// R-10, B-22: a session has one resume at a time, which can be seen to run, and
// the same stop again joins the first.
func TestOneResumeAndOneStop(t *testing.T) {
	c, _ := temporaltest.Namespace(t)
	e := testEngine(t, c)
	running, err := e.Running(t.Context(), "s1")
	require.NoError(t, err)
	require.False(t, running)
	require.NoError(t, e.StartResume(t.Context(), "s1"))
	require.ErrorIs(t, e.StartResume(t.Context(), "s1"), ErrAlreadyResuming)
	running, err = e.Running(t.Context(), "s1")
	require.NoError(t, err)
	require.True(t, running)

	require.NoError(t, e.StartStop(t.Context(), "s1", "i1", "r1"))
	first, err := c.DescribeWorkflow(t.Context(), workflows.StopID("i1", "r1"), "")
	require.NoError(t, err)
	require.NoError(t, e.StartStop(t.Context(), "s1", "i1", "r1"))
	again, err := c.DescribeWorkflow(t.Context(), workflows.StopID("i1", "r1"), "")
	require.NoError(t, err)
	require.Equal(t, first.WorkflowExecution.RunID, again.WorkflowExecution.RunID)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.Running(ended, "s1")
	require.ErrorIs(t, err, ErrUnavailable, "what is not answered is neither yes nor no")
}
