package tied

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/launch"
	"github.com/kandev/recovery/internal/backend/owner"
)

// S-005.3: none runs before it is needed; one that does not start is said so, and
// is tried again by the next one who needs it; after Close none is started.
func TestNoneBeforeAndAfter(t *testing.T) {
	failed, starts := errors.New("failed"), 0
	s := New(Config{Logger: zap.NewNop(), LaunchTimeout: waitFor, Launch: func(context.Context) (*launch.Launched, error) {
		starts++
		return nil, failed
	}})
	_, _, err := s.Client()
	require.ErrorIs(t, err, owner.ErrNoServer)
	require.Zero(t, starts)
	for range 2 {
		_, _, err = OnDemand{s}.Client()
		require.ErrorIs(t, err, failed)
	}
	require.Equal(t, 2, starts)
	require.NoError(t, s.Close(t.Context()))
	_, _, err = OnDemand{s}.Client()
	require.ErrorIs(t, err, owner.ErrNoServer)
	require.Equal(t, 2, starts)
}

// A start that is under way when the backend shuts down is cut short.
func TestCloseDuringAStart(t *testing.T) {
	begun := make(chan struct{})
	s := New(Config{Logger: zap.NewNop(), LaunchTimeout: waitFor, Launch: func(ctx context.Context) (*launch.Launched, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	started := make(chan error, 1)
	go func() {
		_, _, err := OnDemand{s}.Client()
		started <- err
	}()
	<-begun
	require.NoError(t, s.Close(t.Context()))
	require.ErrorIs(t, <-started, context.Canceled)
}
