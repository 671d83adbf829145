package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
)

// S-001.9: a permission request outlives any number of backends. Each one that
// takes over is told of it again, until one has committed it; then two answers at
// once are one answer, and the other learns that it is settled, as does every
// later one. An id that was never given out is another error.
func TestPermissionOutlivesBackends(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	_, err := c.Prompt(t.Context(), "i", "k", say("ask"))
	require.NoError(t, err)
	stream := attach(t, c, "i", 0)
	id := permissionID(t, collect(t, stream, wire.EventPermissionRequest))
	yes := wire.PermissionAnswer{OptionID: "yes"}

	for range 3 {
		require.NoError(t, stream.Close())
		issued, err := c.Rotate(t.Context())
		require.NoError(t, err)
		before := c
		c = c.WithCredential(issued.Credential)
		_, err = c.Confirm(t.Context(), issued.RotationID)
		require.NoError(t, err)
		require.ErrorIs(t, before.AnswerPermission(t.Context(), "i", id, yes), client.ErrSuperseded)
		stream = attach(t, c, "i", 0)
		require.Equal(t, id, permissionID(t, collect(t, stream, wire.EventPermissionRequest)))
	}
	requireCode(t, wire.CodeNotFound, c.AnswerPermission(t.Context(), "i", id+"0", yes))
	requireCode(t, wire.CodeNotFound, c.AnswerPermission(t.Context(), "i", "unknown", yes))

	answers := make(chan error, 2)
	for range cap(answers) {
		go func() { answers <- c.AnswerPermission(t.Context(), "i", id, yes) }()
	}
	first, second := <-answers, <-answers
	if first != nil {
		first, second = second, first
	}
	require.NoError(t, first)
	requireCode(t, wire.CodeSettled, second)
	requireCode(t, wire.CodeSettled, c.AnswerPermission(t.Context(), "i", id, wire.PermissionAnswer{Cancelled: true}))

	var kinds []wire.EventKind
	for _, e := range collect(t, stream, wire.EventTurnEnded) {
		kinds = append(kinds, e.Kind)
	}
	require.Equal(t, []wire.EventKind{wire.EventPermissionSettled, wire.EventTurnEnded}, kinds)
}
