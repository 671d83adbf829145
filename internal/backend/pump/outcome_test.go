package pump_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
)

// S-004.4: a turn's outcome that a re-tracking read as kept and the same turn's
// event apply once, whichever comes first; the other one changes nothing.
func TestKeptOutcomeAndItsEventApplyOnce(t *testing.T) {
	for first, stopReason := range map[string]string{"kept": "end_turn", "delivered": "refusal"} {
		t.Run(first+" first", func(t *testing.T) {
			b := setUp(t)
			b.beginTurn(t, "t-1", "key")
			retrack := func() store.Retracked {
				done, err := b.Publish(t.Context(), store.Retrack{
					Installation: inst, SessionID: b.session, ExecutionID: instance + b.session, BootID: boot,
					ServerIdentity: "server", PID: 4711, ProcessStart: "x",
					Outcome: &store.Outcome{TurnID: "t-1", Key: "key", StopReason: "end_turn", EndedAt: time.Now()},
				})
				require.NoError(t, err)
				return done
			}
			if first == "kept" {
				require.True(t, retrack().OutcomeApplied)
			}
			b.endTurn(t, "t-1", "key", "refusal")
			b.pumps.Start(b.session, instance)
			b.committed(t, 2)
			if first == "delivered" {
				require.False(t, retrack().OutcomeApplied)
			}
			turn, err := b.LastTurn(t.Context(), inst, b.session)
			require.NoError(t, err)
			require.Equal(t, recovery.TurnEnded, turn.State)
			require.Equal(t, stopReason, turn.StopReason)
			b.inState(t, recovery.StateWaitingForInput)
		})
	}
}

// S-004.4: another end of a turn that is over, as of a cancelled one whose agent
// answers late, is in the transcript and touches neither that turn nor the next.
func TestLateEndTouchesNoOtherTurn(t *testing.T) {
	b := setUp(t)
	b.beginTurn(t, "t-1", "one")
	b.endTurn(t, "t-1", "one", "cancelled")
	b.pumps.Start(b.session, instance)
	b.committed(t, 2)
	b.beginTurn(t, "t-2", "two")
	b.endTurn(t, "t-1", "one", "end_turn")
	b.committed(t, 4)
	turn, err := b.OpenTurn(t.Context(), inst, b.session)
	require.NoError(t, err)
	require.NotNil(t, turn)
	require.Equal(t, "t-2", turn.TurnID)
	b.inState(t, recovery.StateRunning)

	b.endTurn(t, "t-2", "two", "end_turn")
	b.committed(t, 5)
	b.inState(t, recovery.StateWaitingForInput)
}

// beginTurn records a prompt, and has the agent begin to work on it.
func (b *bench) beginTurn(t *testing.T, turn, key string) {
	t.Helper()
	_, _, err := b.RecordTurn(t.Context(), inst, b.session, key, []byte(`[]`), boot)
	require.NoError(t, err)
	b.agent.Append(t, wire.EventTurnStarted, turn, wire.TurnStarted{Key: key})
}

func (b *bench) endTurn(t *testing.T, turn, key, reason string) {
	t.Helper()
	b.agent.Append(t, wire.EventTurnEnded, turn, wire.TurnOutcome{TurnID: turn, Key: key, StopReason: reason, EndedAt: time.Now()})
}

func (b *bench) inState(t *testing.T, want recovery.SessionState) {
	t.Helper()
	session, err := b.GetSession(t.Context(), inst, b.session)
	require.NoError(t, err)
	require.Equal(t, want, session.State)
}
