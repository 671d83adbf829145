package demo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

const (
	firstKey  = "demo-1"
	secondKey = "demo-2"

	// leastOutage keeps the backend away long enough to be noticed by hand.
	leastOutage = 3 * time.Second
	patience    = 2 * time.Minute
)

// work is the demo itself: an error before the outage means that it could not
// be carried out; what fails to come about afterwards is a broken promise.
func (r *run) work(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	err := r.survive(ctx)
	var unmet *unmetError
	var refused *userapi.Error
	switch {
	case errors.As(err, &unmet):
		r.report.broke("%v", unmet)
	case errors.As(err, &refused):
		r.report.broke("the backend refused: %v", err)
	case err != nil:
		return err
	}
	return r.verify(ctx)
}

// begin brings every session to the point where the outage meets it.
func (r *run) begin(ctx context.Context) error {
	if err := r.awaitPhase(ctx); err != nil {
		return err
	}
	r.say("starting %d agents", len(r.sessions))
	if err := r.Backend.Client.PutProfile(ctx, r.record.profile()); err != nil {
		return fmt.Errorf("put the demo's profile: %w", err)
	}
	if err := r.each(ctx, r.create); err != nil {
		return err
	}
	if err := r.awaitAll(ctx, "agents ready", patience, func(_ *session, v view) bool { return v.idle() }); err != nil {
		return err
	}
	r.say("prompting every agent")
	every := streamInterval(len(r.sessions))
	err := r.each(ctx, func(ctx context.Context, s *session) error {
		return r.prompt(ctx, s, firstKey, script(s.kind, r.gates, every))
	})
	if err != nil {
		return err
	}
	err = r.awaitAgents(ctx, "agents at work", patience, func(_ *session, p produced) bool { return p.Updates >= opening })
	if err != nil {
		return err
	}
	err = r.awaitAll(ctx, "idle agents idle", patience, func(s *session, v view) bool {
		return (s.kind == KindIdle) == v.ended(firstKey)
	})
	if err != nil {
		return err
	}
	return r.remember(ctx)
}

func (r *run) awaitPhase(ctx context.Context) error {
	return r.await(ctx, "backend serving", patience, func(ctx context.Context) (bool, string, error) {
		status, err := r.Backend.Client.Status(ctx)
		return status.Phase == userapi.PhaseServing, string(status.Phase), err
	})
}

// survive ends the backend, starts another one and lets every session go on.
func (r *run) survive(ctx context.Context) error {
	ended, err := r.endBackend(ctx)
	if err != nil {
		return err
	}
	if err := r.outage(ctx, ended); err != nil {
		return err
	}
	if r.opts.Chaos {
		if ended, err = r.chaos(ctx); err != nil {
			return err
		}
	}
	if err := r.StartBackend(ctx); err != nil {
		return err
	}
	r.report.OutageMS = r.Backend.StartedAt.Sub(ended).Milliseconds()
	r.say("backend started again after %s", milliseconds(r.report.OutageMS))
	if err := r.recover(ctx); err != nil {
		return err
	}
	if len(r.report.BrokenPromises) > 0 {
		// What is not there any more would be waited for in vain.
		return nil
	}
	return r.goOn(ctx)
}

func (r *run) endBackend(ctx context.Context) (time.Time, error) {
	r.report.killed = time.Now()
	if r.opts.Graceful {
		r.say("asking the backend to end in the middle of the turns (SIGTERM)")
		err := r.Backend.Stop(ctx)
		return time.Now(), err
	}
	r.say("killing the backend in the middle of the turns (SIGKILL)")
	err := r.Backend.Kill()
	return time.Now(), err
}

// outage waits until the agents have done, without a backend, what their kind
// is about.
func (r *run) outage(ctx context.Context, ended time.Time) error {
	if err := os.WriteFile(r.gates.outage, nil, 0o600); err != nil {
		return fmt.Errorf("open a gate: %w", err)
	}
	r.say("no backend now; the agents work on")
	err := r.awaitAgents(ctx, "agents working on without a backend", patience, func(s *session, p produced) bool {
		switch s.kind {
		case KindStream:
			return p.Updates > s.before.Updates
		case KindEnd:
			return p.Ends > s.before.Ends
		case KindAsk:
			return p.Asks > s.before.Asks
		default:
			return true
		}
	})
	if err != nil {
		return err
	}
	return r.await(ctx, "the outage's length", patience, func(context.Context) (bool, string, error) {
		return time.Since(ended) >= leastOutage, "", nil
	})
}

// recover measures how long the new backend takes until every session is usable
// again, and looks at what it then says.
func (r *run) recover(ctx context.Context) error {
	if err := r.awaitPhase(ctx); err != nil {
		return err
	}
	err := r.awaitAll(ctx, "sessions recovered", patience, func(_ *session, v view) bool {
		// One that has lost its agent for good is settled, too; it is told of below.
		return v.Agent != nil || v.State != "" && !v.State.HasAgent()
	})
	if err != nil {
		return err
	}
	r.report.RecoveryMS = time.Since(r.Backend.StartedAt).Milliseconds()
	r.say("all sessions recovered after %s", milliseconds(r.report.RecoveryMS))
	return r.checkAdoption(ctx)
}

// checkAdoption compares what the backend says after its recovery with what
// each kind of session must be in then (S-003.2, S-003.3, S-004.2).
func (r *run) checkAdoption(ctx context.Context) error {
	status, err := r.Backend.Client.Status(ctx)
	if err != nil {
		return err
	}
	r.report.Adopted = status.Control != nil && status.Control.Adopted
	if !r.report.Adopted {
		r.report.broke("the surviving control server was not adopted")
	}
	if pass := status.Recovery; pass != nil {
		r.report.TemporalUI = fmt.Sprintf("%s/namespaces/default/workflows/%s/%s",
			r.Stack.TemporalUI(), url.PathEscape(pass.WorkflowID), pass.RunID)
	}
	views, err := r.views(ctx)
	if err != nil {
		return err
	}
	for _, s := range r.sessions {
		v, want := views[s.id], recovery.StateRunning
		if s.kind == KindEnd || s.kind == KindIdle {
			want = recovery.StateWaitingForInput
		}
		if v.State != want {
			r.report.broke("session %s (%s) is %s after the recovery instead of %s", s.id, s.kind, v.describe(), want)
		}
	}
	return nil
}

// goOn answers what was asked, lets the streams end and prompts every session
// once more.
func (r *run) goOn(ctx context.Context) error {
	err := r.awaitAll(ctx, "permission requests shown", patience, func(s *session, v view) bool {
		return s.kind != KindAsk || len(v.Pending) > 0
	})
	if err != nil {
		return err
	}
	r.say("answering the permission requests, ending the streams")
	if err := r.each(ctx, r.answer); err != nil {
		return err
	}
	if err := os.WriteFile(r.gates.finish, nil, 0o600); err != nil {
		return fmt.Errorf("open a gate: %w", err)
	}
	err = r.awaitAll(ctx, "turns ended", patience, func(s *session, v view) bool { return v.ended(s.newest()) })
	if err != nil {
		return err
	}
	r.say("prompting every session once more")
	err = r.each(ctx, func(ctx context.Context, s *session) error { return r.prompt(ctx, s, secondKey, again) })
	if err != nil {
		return err
	}
	return r.awaitAll(ctx, "answers to the last prompt", patience, func(_ *session, v view) bool { return v.ended(secondKey) })
}
