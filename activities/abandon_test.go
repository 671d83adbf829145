//go:build unix

package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/activities"
	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

// R-6, W-3: a launch whose deadline passed while no backend was there is undone
// only if its agent was not published. A published one, in the middle of a turn,
// is tracked and lives; a leftover, and one that its user wants ended, are ended.
func TestAPublishedAgentIsNotAbandoned(t *testing.T) {
	db, executions, pumps := storetest.Open(t), execution.New(), &pumped{}
	require.NoError(t, db.EnsureInstallation(t.Context(), inst))
	require.NoError(t, db.PutProfile(t.Context(), inst, store.Profile{ID: "p", Agent: "fake", Command: []string{"fake"}}))
	s := survive(t, "")
	sessions := &activities.Sessions{
		Store: db, Source: s, Executions: executions, Pumps: pumps, Logger: zap.NewNop(), Installation: inst, BootID: boot,
	}
	abandon := func(session, execution string) (calls.ResumeResult, error) {
		return sessions.AbandonStart(t.Context(), calls.AbandonInput{
			Intent: calls.StartIntent{SessionID: session, ExecutionID: execution}, Cause: "too late",
		})
	}
	session := s.launch(t, db, "published", "wait file never")
	before, err := db.GetSession(t.Context(), inst, session)
	require.NoError(t, err)
	_, err = abandon(session, "published")
	require.Error(t, err, "recovery holds the session")
	s.lives(t, "published")

	executions.OpenLaunches()
	result, err := abandon(session, "published")
	require.NoError(t, err)
	require.Equal(t, calls.ResumeResult{State: recovery.StateWaitingForInput, ExecutionID: "published"}, result)
	s.lives(t, "published")
	tracked, ok := executions.Get(session)
	require.True(t, ok)
	require.Equal(t, "published", tracked.InstanceID)
	require.Equal(t, []string{session}, pumps.sessions)
	after, err := db.GetSession(t.Context(), inst, session)
	require.NoError(t, err)
	require.Equal(t, before.State, after.State)
	require.Equal(t, recovery.StateRunning, after.State)

	_, err = db.RequestStop(t.Context(), store.StopRequest{Installation: inst, SessionID: session, RequestID: "stop"})
	require.NoError(t, err)
	_, err = abandon(session, "published")
	require.NoError(t, err)
	s.gone(t, "published")
}

func (s *survivors) lives(t *testing.T, id string) {
	t.Helper()
	detail, err := s.client.Get(t.Context(), id)
	require.NoError(t, err)
	require.True(t, detail.Alive())
}

func (s *survivors) gone(t *testing.T, id string) {
	t.Helper()
	listed, err := s.client.List(t.Context())
	require.NoError(t, err)
	for _, instance := range listed {
		require.NotEqual(t, id, instance.ID)
	}
}
