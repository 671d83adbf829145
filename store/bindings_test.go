//go:build unix

package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/store"
)

// B-17: an execution is created on one control server only: once bound, another
// server is refused, so that no second agent starts beside the first.
func TestBindExecution(t *testing.T) {
	b := setup(t)
	sess := b.starting("x")
	bind := func(execution, server string) error {
		return b.BindExecution(b.ctx, store.Binding{Installation: b.inst, SessionID: sess.ID, ExecutionID: execution, ServerIdentity: server})
	}
	require.ErrorIs(t, bind("other", "one"), store.ErrExecutionReplaced)
	require.NoError(t, bind("x", "one"))
	require.NoError(t, bind("x", "one"))
	require.ErrorIs(t, bind("x", "two"), store.ErrExecutionReplaced)
	require.Equal(t, "one", b.record(sess.ID).ServerIdentity)

	b.abandon(sess.ID, "x")
	require.ErrorIs(t, bind("x", "one"), store.ErrExecutionReplaced)
	require.Empty(t, b.record(sess.ID).ServerIdentity, "the next execution is bound anew")
}
