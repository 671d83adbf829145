package demo

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

type produced = fakeagent.Produced

// session is one session of the demo.
type session struct {
	kind   Kind
	tree   string // its worktree
	print  string // the worktree's fingerprint before any agent ran
	id     string
	pid    int    // of the agent, before the outage
	start  string // that process's start, which tells it from a later one
	before produced
	// between are the keys of prompts that were sent between two kills.
	between []string
}

// newest is the key of the session's last prompt so far, before the final one.
func (s *session) newest() string {
	if n := len(s.between); n > 0 {
		return s.between[n-1]
	}
	return firstKey
}

// view is a session as the backend shows it.
type view userapi.Session

func (v view) describe() string {
	if v.State == "" {
		return "unknown to the backend"
	}
	turn, agent := "no turn", "no agent"
	if v.Turn != nil {
		turn = fmt.Sprintf("turn %s %s", v.Turn.Key, v.Turn.State)
	}
	if v.Agent != nil {
		agent = fmt.Sprintf("agent %d", v.Agent.PID)
	}
	return fmt.Sprintf("%s, %s, %s", v.State, turn, agent)
}

// idle reports whether the session has its agent and waits for a prompt.
func (v view) idle() bool {
	return v.Agent != nil && v.State == recovery.StateWaitingForInput
}

// ended reports whether the session is idle and the turn with the key has ended.
func (v view) ended(key string) bool {
	return v.idle() && v.Turn != nil && v.Turn.Key == key && !v.Turn.State.Open()
}

func (r *run) views(ctx context.Context) (map[string]view, error) {
	sessions, err := r.Backend.Client.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	views := make(map[string]view, len(sessions))
	for _, s := range sessions {
		views[s.ID] = view(s)
	}
	return views, nil
}

// atOnce bounds how many requests the demo has in flight.
const atOnce = 8

// each does something with every session, several at once.
func (r *run) each(ctx context.Context, do func(context.Context, *session) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, s := range r.sessions {
		group.Go(func() error { return do(ctx, s) })
	}
	return group.Wait()
}

func (r *run) create(ctx context.Context, s *session) error {
	created, err := r.Backend.Client.CreateSession(ctx, userapi.CreateSession{
		ProfileID: profileID, Title: "demo: " + string(s.kind), Workspace: s.tree,
	})
	if err != nil {
		return fmt.Errorf("create a session: %w", err)
	}
	s.id = created.ID
	return nil
}

func (r *run) prompt(ctx context.Context, s *session, key, text string) error {
	if _, err := r.Backend.Client.Prompt(ctx, s.id, key, text); err != nil {
		return fmt.Errorf("prompt session %s: %w", s.id, err)
	}
	return nil
}

// remember notes which process the agent is and what it produced so far.
func (r *run) remember(ctx context.Context) error {
	views, err := r.views(ctx)
	if err != nil {
		return err
	}
	trees, err := r.record.byTree()
	if err != nil {
		return err
	}
	for _, s := range r.sessions {
		s.pid = views[s.id].Agent.PID
		s.before = trees[s.tree].Produced()
		if s.start, err = process.Identity(s.pid); err != nil {
			return fmt.Errorf("identify the agent of session %s: %w", s.id, err)
		}
	}
	return nil
}

// answer allows what the session's agent asks.
func (r *run) answer(ctx context.Context, s *session) error {
	shown, err := r.Backend.Client.Session(ctx, s.id)
	if err != nil {
		return err
	}
	for _, request := range shown.Pending {
		err := r.Backend.Client.AnswerPermission(ctx, s.id, request.RequestID, userapi.PermissionAnswer{OptionID: fakeagent.OptionAllow})
		if err != nil {
			return fmt.Errorf("answer the permission request of session %s: %w", s.id, err)
		}
	}
	return nil
}
