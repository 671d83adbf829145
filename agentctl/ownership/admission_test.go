package ownership

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// O-002.2, W-7: rotation cancels what the older credential had admitted, and
// answers only once all of it has ended.
func TestRotateWaitsForWhatIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, first := owned(t)
		request, err := a.Admit(first, Request)
		require.NoError(t, err)
		stream, err := a.Admit(first, Stream)
		require.NoError(t, err)
		over, err := a.Admit(first, Request)
		require.NoError(t, err)
		over.Release()
		require.NoError(t, request.Context().Err())

		answered := make(chan wire.Issued, 1)
		go func() {
			issued, err := a.Rotate(context.Background(), first)
			require.NoError(t, err)
			answered <- issued
		}()
		synctest.Wait()
		require.Empty(t, answered, "answered while requests were in flight")
		require.Error(t, request.Context().Err())
		require.Error(t, stream.Context().Err())
		_, err = a.Admit(first, Request)
		requireCode(t, wire.CodeSuperseded, err)

		request.Release()
		request.Release()
		synctest.Wait()
		require.Empty(t, answered, "answered while a stream was open")
		stream.Release()
		require.NoError(t, a.Check((<-answered).Credential))
	})
}

// O-002.2: the check of the credential and the entry among those that a rotation
// ends are one step. Whoever is admitted at the very moment is ended as well.
func TestNothingSlipsThroughARotation(t *testing.T) {
	const rounds, peers = 50, 2
	for range rounds {
		a, first := owned(t)
		var admitting sync.WaitGroup
		var admitted [peers][]*Admission
		begun := make(chan struct{}, peers)
		for i := range peers {
			admitting.Go(func() {
				for m, err := a.Admit(first, Stream); err == nil; m, err = a.Admit(first, Stream) {
					if len(admitted[i]) == 0 {
						begun <- struct{}{}
					}
					admitted[i] = append(admitted[i], m)
				}
			})
		}
		for range peers {
			<-begun
		}
		_, _, err := a.rotate(first) // does not wait for the releases
		require.NoError(t, err)
		admitting.Wait()
		for _, m := range slices.Concat(admitted[:]...) {
			require.Error(t, m.Context().Err(), "a stream goes on under the superseded credential")
		}
	}
}

// O-002.10: a rotation whose caller gave up stands, and its replay waits too.
func TestAbandonedRotationIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, first := owned(t)
		request, err := a.Admit(first, Request)
		require.NoError(t, err)

		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = a.Rotate(gone, first)
		require.ErrorIs(t, err, context.Canceled)
		requireCode(t, wire.CodeSuperseded, a.Check(first))
		_, err = a.Rotate(gone, first)
		require.ErrorIs(t, err, context.Canceled, "the replay waits for the same request")

		request.Release()
		issued, err := a.Rotate(context.Background(), first)
		require.NoError(t, err)
		require.Equal(t, uint64(2), issued.RotationID)
	})
}

// W-7: a context bound to an admission ends with it, and with its parent.
func TestBind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, first := owned(t)
		parent, cancelParent := context.WithCancel(context.Background())
		m, err := a.Admit(first, Request)
		require.NoError(t, err)
		byParent, end := m.Bind(parent)
		defer end()
		byAdmission, end := m.Bind(context.Background())
		defer end()

		cancelParent()
		synctest.Wait()
		require.Error(t, byParent.Err())
		require.NoError(t, byAdmission.Err())
		m.Release()
		synctest.Wait()
		require.Error(t, byAdmission.Err())
	})
}

// O-003.9: after the decision nothing is admitted, and Quiesce waits for the
// requests of before, but not for streams.
func TestQuiesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, first := owned(t)
		request, err := a.Admit(first, Request)
		require.NoError(t, err)
		stream, err := a.Admit(first, Stream)
		require.NoError(t, err)
		require.NoError(t, a.Shutdown(first))
		_, err = a.Admit(first, Request)
		requireCode(t, wire.CodeShuttingDown, err)

		gone, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, a.Quiesce(gone), context.Canceled)
		require.Error(t, request.Context().Err())
		request.Release()
		require.NoError(t, a.Quiesce(context.Background()))
		require.NoError(t, stream.Context().Err(), "streams deliver how their instances end")
		stream.Release()
	})
}
