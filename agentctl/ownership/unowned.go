package ownership

import (
	"context"
	"time"
)

// Reason says why a control server ends.
type Reason string

// Reasons of a shutdown.
const (
	ReasonRequested  Reason = "requested"       // the ownership shutdown (O-002.9)
	ReasonUnowned    Reason = "unowned"         // nobody renewed (O-003.1)
	ReasonSignal     Reason = "signal"          // the host asked
	ReasonListener   Reason = "listener_failed" // it cannot be reached any more
	ReasonParent     Reason = "parent_ended"    // the process it is bound to ended (S-005.1)
	ReasonUnrecorded Reason = "never_recorded"  // its parent let go before recording it (B-26)
)

// checksPerInterval is how often within a renewal interval ownership is judged.
const checksPerInterval = 10

// Shutdown decides to shut down on behalf of an acceptable credential
// (O-002.9). Deciding again is accepted.
func (a *Authority) Shutdown(token string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.requireAcceptable(token); err != nil {
		return err
	}
	a.decide(ReasonRequested)
	return nil
}

// ShutdownFor decides to shut down for a reason of the host's own.
func (a *Authority) ShutdownFor(reason Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decide(reason)
}

// ShuttingDown is closed once a shutdown is decided. Nothing reverses that
// (O-003.9).
func (a *Authority) ShuttingDown() <-chan struct{} { return a.shutdown }

// Reason is why the server shuts down, or empty while it does not.
func (a *Authority) Reason() Reason {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reason
}

// decide is one-way; the first reason stands. The caller holds the lock.
func (a *Authority) decide(reason Reason) {
	if a.deciding() {
		return
	}
	a.reason = reason
	close(a.shutdown)
}

func (a *Authority) deciding() bool { return a.reason != "" }

// renew resets the age that expiry is judged by. The caller holds the lock.
func (a *Authority) renew() { a.renewed = a.clock() }

// SinceRenewal is the age of the last renewal, or of the start if there was
// none.
func (a *Authority) SinceRenewal() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clock().Sub(a.renewed)
}

// Watch shuts down for ReasonUnowned once the last renewal is as old as the
// unowned period (O-003.1, O-003.2). It returns when a shutdown was decided or
// ctx ended.
func (a *Authority) Watch(ctx context.Context) {
	due := a.clock()
	for {
		wait := a.judge(due)
		due = a.clock().Add(wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-a.shutdown:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// checkInterval is the longest time between two judgements.
func (a *Authority) checkInterval() time.Duration { return a.RenewalInterval() / checksPerInterval }

// judge decides whether the server is unowned, and says how long to wait before
// judging again. A call that comes later than due by more than an interval
// means that this process did not run, nor, it is to be assumed, did its owner:
// the owner then gets the time of one renewal, which is not a renewal (B-13).
func (a *Authority) judge(due time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock()
	interval := a.checkInterval()
	if now.Sub(due) > interval {
		a.graceUntil = now.Add(a.RenewalInterval())
	}
	expires := a.renewed.Add(a.period)
	if expires.Before(a.graceUntil) {
		expires = a.graceUntil
	}
	left := expires.Sub(now)
	if left <= 0 {
		a.decide(ReasonUnowned)
	}
	return min(max(left, 0), interval)
}
