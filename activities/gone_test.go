//go:build unix

package activities_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/kandev/recovery/activities"
	"github.com/kandev/recovery/activities/calls"
)

// S-005.3, W-3: a start whose agent went with the server of an earlier boot fails
// for good at whatever step it goes on, rather than wait out the launch deadline.
func TestAStartWhoseAgentIsGoneFails(t *testing.T) {
	s := &activities.Sessions{Source: survive(t, "")}
	for name, step := range map[string]func(context.Context, calls.StartIntent) error{"await": s.AwaitReady, "publish": s.PublishStarted} {
		var failed *temporal.ApplicationError
		require.ErrorAs(t, step(t.Context(), calls.StartIntent{SessionID: "s", ExecutionID: "gone"}), &failed, name)
		require.True(t, failed.NonRetryable(), name)
		require.Equal(t, calls.FailureAgentStart, failed.Type(), name)
	}
}
