package instance

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// stopAttempt is one try to stop an instance; err is written before done is
// closed.
type stopAttempt struct {
	done chan struct{}
	err  error
}

func (a *stopAttempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// Stop ends an instance with its whole tree: asked first, killed after grace.
// It frees paused producers at once; what was not delivered dies with it
// (S-001.10). It joins a stop in progress, whose grace then counts. The id is
// never used again, also if there was no such instance (absent). A stop that
// leaves processes fails with CodeStopFailed and can be repeated. If ctx ends
// first, the stop goes on.
func (s *Supervisor) Stop(ctx context.Context, id string, grace time.Duration) (absent bool, err error) {
	i := s.bury(id)
	if i == nil {
		return true, nil
	}
	attempt := s.beginStop(i, grace, always)
	select {
	case <-attempt.done:
		return false, attempt.err
	case <-ctx.Done():
		return false, refuse(wire.CodeStopFailed, "the stop has not ended yet")
	}
}

// bury leaves a tombstone and returns the id's instance, nil if there is none.
func (s *Supervisor) bury(id string) *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped[id] = struct{}{}
	return s.instances[id]
}

// StopAll stops every instance at once and joins what failed.
func (s *Supervisor) StopAll(ctx context.Context, grace time.Duration) error {
	all := s.all()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for n, i := range all {
		wg.Go(func() { _, errs[n] = s.Stop(ctx, i.id, grace) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func always(*instance) bool { return true }

// beginStop starts a stop, or returns the one in progress, if the condition
// holds under the instance's lock; nil if it does not.
func (s *Supervisor) beginStop(i *instance, grace time.Duration, condition func(*instance) bool) *stopAttempt {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !condition(i) {
		return nil
	}
	if i.stop != nil && !i.stop.over() {
		return i.stop
	}
	attempt := &stopAttempt{done: make(chan struct{})}
	i.stop = attempt
	i.state = wire.InstanceStopping
	s.bury(i.id)
	s.wg.Go(func() {
		defer close(attempt.done)
		if err := i.shutDown(grace, s.killWait); err != nil {
			i.logger.Error("stop failed", zap.Error(err))
			attempt.err = stopRefusal(err)
			return
		}
		s.remove(i)
		i.logger.Info("instance stopped")
	})
	return attempt
}

// shutDown ends everything of the instance, in this order: its log, so that
// nothing waits for an attach; the start and what follows the agent, which would
// take the end for the agent's own; the conversation, so that outstanding
// permission requests are answered; the processes.
func (i *instance) shutDown(grace, killWait time.Duration) error {
	i.log.Close()
	<-i.spawned
	if i.spawnErr != nil {
		return nil
	}
	i.end()
	i.agent.Close()
	ctx, cancel := context.WithTimeout(context.Background(), grace+killWait)
	defer cancel()
	if err := i.process.Stop(ctx, grace); err != nil {
		return err
	}
	i.wg.Wait()
	i.process.Close()
	return nil
}
