package worker

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
)

// heartbeats keeps every activity of a worker beating while it runs, so that
// the death of this process is noticed within the heartbeat timeout and the
// next backend goes on (W-3). How long an activity may take is bounded by its
// own timeouts.
type heartbeats struct {
	interceptor.WorkerInterceptorBase
}

// beatInterval is well below the heartbeat timeouts that workflows set.
const beatInterval = time.Second

func (heartbeats) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &beating{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type beating struct {
	interceptor.ActivityInboundInterceptorBase
}

func (b *beating) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	done := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		tick := time.NewTicker(beatInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	})
	defer beating.Wait()
	defer close(done)
	return b.Next.ExecuteActivity(ctx, in)
}
