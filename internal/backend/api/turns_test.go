package api_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/controltest"
	"github.com/kandev/recovery/internal/backend/execution"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

func closed() *execution.Store { return execution.New() }

func endTurn(t *testing.T, agent *controltest.Agent, turn userapi.Turn, reason string) {
	t.Helper()
	agent.Append(t, wire.EventTurnEnded, turn.TurnID, wire.TurnOutcome{
		TurnID: turn.TurnID, Key: turn.Key, StopReason: reason, EndedAt: time.Now(),
	})
}

// B-17: a prompt is written down, reaches the agent once however often it is
// repeated, and its end is seen in the session.
func TestPrompt(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	for range 3 {
		turn, err := b.Prompt(t.Context(), id, "key", "hello")
		require.NoError(t, err)
		require.Equal(t, userapi.Turn{Key: "key", TurnID: "t-instance-" + id + "-1", State: recovery.TurnOpen}, turn)
	}
	require.Equal(t, []string{"key"}, agent.Prompts())
	s, err := b.Session(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, recovery.StateRunning, s.State)
	require.Equal(t, recovery.TaskInProgress, s.TaskState)

	_, err = b.Prompt(t.Context(), id, "key", "another text")
	refused(t, userapi.CodeConflict, err)
	_, err = b.Prompt(t.Context(), id, "key-2", "too early")
	refused(t, userapi.CodeConflict, err)

	endTurn(t, agent, *s.Turn, "end_turn")
	s = b.position(t, id, 1)
	require.Equal(t, recovery.StateWaitingForInput, s.State)
	require.Equal(t, recovery.TaskReview, s.TaskState)
	require.Equal(t, recovery.TurnEnded, s.Turn.State)
	require.Equal(t, "end_turn", s.Turn.StopReason)
	turn, err := b.Prompt(t.Context(), id, "key", "hello")
	require.NoError(t, err)
	require.Equal(t, recovery.TurnEnded, turn.State)
	require.Equal(t, []string{"key"}, agent.Prompts())
	_, err = b.Prompt(t.Context(), id, "key-2", "now")
	require.NoError(t, err)
}

func TestPromptsThatCannotWork(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	_, err := b.Prompt(t.Context(), id, "key", "")
	refused(t, userapi.CodeInvalid, err)
	_, err = b.Prompt(t.Context(), id, "a key", "text")
	refused(t, userapi.CodeInvalid, err)
	_, err = b.Prompt(t.Context(), "other", "key", "text")
	refused(t, userapi.CodeNotFound, err)
	status, _ := b.request(t, http.MethodPut, "/api/v1/sessions/"+id+"/prompts/key", `{"text":"\ud800"}`, nil)
	require.Equal(t, 200, status, "a lone surrogate becomes a replacement character")
	require.Equal(t, []string{"key"}, agent.Prompts())
}

// B-17: whether a prompt arrived may stay open; it is then still recorded, and the
// same key may be used until it is known.
func TestPromptWithUnknownOutcome(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	agent.Refuse(&wire.Error{Code: wire.CodeInternal, Message: "x"})
	_, err := b.Prompt(t.Context(), id, "key", "text")
	require.True(t, refused(t, userapi.CodeUnavailable, err).Retryable)
	s, err := b.Session(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, recovery.TurnRecorded, s.Turn.State)

	agent.Refuse(nil)
	turn, err := b.Prompt(t.Context(), id, "key", "text")
	require.NoError(t, err)
	require.Equal(t, recovery.TurnOpen, turn.State)
	require.Equal(t, []string{"key"}, agent.Prompts())
}

// A prompt that the agent refused for good ends its turn as failed, and the session
// takes the next one.
func TestPromptThatTheAgentRefuses(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	agent.Refuse(&wire.Error{Code: wire.CodeNotReady, Message: "the agent has ended"})
	_, err := b.Prompt(t.Context(), id, "key", "text")
	refused(t, userapi.CodeNoAgent, err)
	s, err := b.Session(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, recovery.TurnFailed, s.Turn.State)
	require.Equal(t, recovery.StateWaitingForInput, s.State)
	agent.Refuse(nil)
	_, err = b.Prompt(t.Context(), id, "key-2", "text")
	require.NoError(t, err)
}

// S-002.8, S-002.16: what recovery holds is told apart from what has no agent.
func TestSessionsWithoutUsableAgent(t *testing.T) {
	b := serve(t)
	s := b.create(t)
	_, err := b.Prompt(t.Context(), s.ID, "key", "text")
	require.True(t, refused(t, userapi.CodeNoAgent, err).Retryable, "its agent may still come")

	_, err = b.executions.TakeGuards(1, []string{s.ID})
	require.NoError(t, err)
	_, err = b.Prompt(t.Context(), s.ID, "key", "text")
	require.True(t, refused(t, userapi.CodeRecovering, err).Retryable)
	require.True(t, refused(t, userapi.CodeRecovering, b.Cancel(t.Context(), s.ID)).Retryable)

	b.executions.KeepGuard(s.ID, "stuck")
	_, err = b.Prompt(t.Context(), s.ID, "key", "text")
	unstopped := refused(t, userapi.CodeUnstopped, err)
	require.False(t, unstopped.Retryable)
	require.Contains(t, unstopped.Message, "stuck")

	gone := b.create(t)
	require.NoError(t, b.Stop(t.Context(), gone.ID))
	_, err = b.Prompt(t.Context(), gone.ID, "key", "text")
	require.False(t, refused(t, userapi.CodeNoAgent, err).Retryable)
}

// O-002.3: an operation that a newer credential defeats drops the executions and is
// not tried again; the recorded prompt stays for whoever drives now.
func TestSupersededByAnotherBackend(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	b.pumps.StopAll()
	b.control.TakeOver(t)
	_, err := b.Prompt(t.Context(), id, "key", "text")
	refused(t, userapi.CodeUnavailable, err)
	require.Empty(t, agent.Prompts())
	require.Empty(t, b.executions.List())
	_, _, err = b.owner.Client()
	require.ErrorIs(t, err, owner.ErrNoServer)
	s, err := b.Session(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, recovery.TurnRecorded, s.Turn.State)
	require.Nil(t, s.Agent)
}

// S-001.9: permission requests that wait are seen in the session, and answers reach
// the agent.
func TestPermissions(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	params := json.RawMessage(`{"options":[{"optionId":"yes"}]}`)
	agent.Append(t, wire.EventPermissionRequest, "t-1", wire.PermissionRequested{RequestID: "r-1", Params: params})
	agent.Append(t, wire.EventPermissionRequest, "t-1", wire.PermissionRequested{RequestID: "r-2", Params: params})
	s := b.position(t, id, 2)
	require.Len(t, s.Pending, 2)
	require.Equal(t, "r-1", s.Pending[0].RequestID)
	require.JSONEq(t, string(params), string(s.Pending[0].Params))

	require.NoError(t, b.AnswerPermission(t.Context(), id, "r-1", userapi.PermissionAnswer{OptionID: "yes"}))
	require.NoError(t, b.AnswerPermission(t.Context(), id, "r-2", userapi.PermissionAnswer{Cancelled: true}))
	require.Equal(t, map[string]wire.PermissionAnswer{"r-1": {OptionID: "yes"}, "r-2": {Cancelled: true}}, agent.Answers())
	agent.Append(t, wire.EventPermissionSettled, "t-1", wire.PermissionSettled{RequestID: "r-1", OptionID: "yes"})
	s = b.position(t, id, 3)
	require.Len(t, s.Pending, 1)
	require.Equal(t, "r-2", s.Pending[0].RequestID)

	agent.Append(t, wire.EventAgentExited, "", wire.AgentExited{})
	require.Empty(t, b.position(t, id, 4).Pending)
}

// Requests of an earlier instance do not wait any more.
func TestPermissionsOfAnEarlierInstance(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	agent.Append(t, wire.EventPermissionRequest, "", wire.PermissionRequested{RequestID: "r-1"})
	require.Len(t, b.position(t, id, 1).Pending, 1)
	b.executions.Drop(id)
	require.Empty(t, b.position(t, id, 1).Pending)
	require.NoError(t, b.executions.TrackLaunched(execution.Execution{SessionID: id, InstanceID: "next"}))
	require.Empty(t, b.position(t, id, 1).Pending)
}

func TestPermissionAnswersThatCannotWork(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	refused(t, userapi.CodeInvalid, b.AnswerPermission(t.Context(), id, "r", userapi.PermissionAnswer{}))
	refused(t, userapi.CodeInvalid, b.AnswerPermission(t.Context(), id, "r", userapi.PermissionAnswer{OptionID: "a", Cancelled: true}))
	answer := userapi.PermissionAnswer{Cancelled: true}
	for code, want := range map[wire.Code]userapi.Code{
		wire.CodeNotFound: userapi.CodeNotFound, wire.CodeSettled: userapi.CodeConflict,
		wire.CodeShuttingDown: userapi.CodeUnavailable, wire.CodeBadRequest: userapi.CodeInvalid,
	} {
		agent.Refuse(&wire.Error{Code: code, Message: "no"})
		refused(t, want, b.AnswerPermission(t.Context(), id, "r", answer))
	}
}

func TestCancel(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	require.NoError(t, b.Cancel(t.Context(), id))
	require.Equal(t, 1, agent.Cancels())
	agent.Refuse(&wire.Error{Code: wire.CodeNoTurn, Message: "no turn is open"})
	refused(t, userapi.CodeConflict, b.Cancel(t.Context(), id))
}

// S-001.9: the requests that wait are found behind pages of others and of
// updates, also by a backend that sees the session for the first time.
func TestPermissionsOfALongTranscript(t *testing.T) {
	b := serve(t)
	id, agent := b.running(t)
	const asked = 250
	for n := range asked {
		request := strconv.Itoa(n)
		agent.Append(t, wire.EventPermissionRequest, "t-1", wire.PermissionRequested{RequestID: request})
		updates(t, agent, 1)
		if n > 0 {
			agent.Append(t, wire.EventPermissionSettled, "t-1", wire.PermissionSettled{RequestID: request, Cancelled: true})
		}
	}
	s := b.position(t, id, 3*asked-1)
	require.Len(t, s.Pending, 1)
	require.Equal(t, "0", s.Pending[0].RequestID)

	updates(t, agent, 1)
	require.Len(t, b.position(t, id, 3*asked).Pending, 1)
	agent.Append(t, wire.EventPermissionSettled, "t-1", wire.PermissionSettled{RequestID: "0", Cancelled: true})
	require.Empty(t, b.position(t, id, 3*asked+1).Pending)
}
