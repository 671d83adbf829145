package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/internal/transcript"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// evidence is everything that is known of one session at the end.
type evidence struct {
	session     *session
	view        view
	history     fakeagent.History
	prompts     int // that the agent received
	transcript  []userapi.Event
	transitions []userapi.Transition
	start       string // of the process that has the agent's pid now
	print       string
}

// verify collects the evidence and fills the report.
func (r *run) verify(ctx context.Context) error {
	r.say("comparing the agents' own records with the transcripts")
	calls, err := r.record.since(r.report.killed)
	if err != nil {
		return err
	}
	r.report.AgentStarts, r.report.ProviderResumes = calls.starts, calls.reopened
	if calls != (since{}) {
		r.report.broke("agents were disturbed: %d started, %d new conversations, %d reopened", calls.starts, calls.news, calls.reopened)
	}
	all, err := r.collect(ctx)
	if err != nil {
		return err
	}
	for _, e := range all {
		line, broken := judge(e)
		r.report.Sessions = append(r.report.Sessions, line)
		r.report.BrokenPromises = append(r.report.BrokenPromises, broken...)
	}
	r.report.total()
	return nil
}

func (r *run) collect(ctx context.Context) ([]evidence, error) {
	views, err := r.views(ctx)
	if err != nil {
		return nil, err
	}
	trees, err := r.record.byTree()
	if err != nil {
		return nil, err
	}
	prompts, err := r.record.prompts()
	if err != nil {
		return nil, err
	}
	all := make([]evidence, len(r.sessions))
	for i, s := range r.sessions {
		e := evidence{session: s, view: views[s.id], history: trees[s.tree]}
		e.prompts = prompts[e.history.SessionID]
		if e.transcript, err = transcript.Read(ctx, r.Backend.Client, s.id, 0); err != nil {
			return nil, fmt.Errorf("read the transcript of session %s: %w", s.id, err)
		}
		if e.transitions, err = r.Backend.Client.Transitions(ctx, s.id); err != nil {
			return nil, fmt.Errorf("read the transitions of session %s: %w", s.id, err)
		}
		if e.start, err = process.Identity(s.pid); err != nil && !errors.Is(err, process.ErrNoProcess) {
			return nil, fmt.Errorf("identify the agent of session %s: %w", s.id, err)
		}
		if e.print, err = Fingerprint(s.tree); err != nil {
			return nil, err
		}
		all[i] = e
	}
	return all, nil
}

// judge turns the evidence of one session into its line of the table and the
// promises that it breaks.
func judge(e evidence) (SessionReport, []string) {
	s, t := e.session, Compare(e.history.Produced(), e.transcript)
	line := SessionReport{
		Session: s.id, Kind: s.kind, PIDBefore: s.pid, State: string(e.view.State),
		EventsProduced: t.Produced, EventsCommitted: t.Committed, Gaps: t.Gaps, Duplicates: t.Duplicates,
		TurnOutcome: "none", WorktreeIdentical: e.print == s.print,
	}
	var broken []string
	promise := func(kept bool, format string, args ...any) {
		if !kept {
			broken = append(broken, fmt.Sprintf("session %s (%s): ", s.id, s.kind)+fmt.Sprintf(format, args...))
		}
	}
	if e.view.Agent != nil {
		line.PIDAfter = e.view.Agent.PID
	}
	if outcome, ok := outcomeOf(e.transcript, firstKey); ok {
		line.TurnOutcome = outcomeText(outcome)
	}
	promise(line.PIDAfter == s.pid, "its agent was process %d and is %d", s.pid, line.PIDAfter)
	promise(e.start == s.start, "process %d is not the agent that it was before the outage", s.pid)
	promise(t.Clean(), "its transcript is not what the agent produced: %+v", t)
	promise(line.WorktreeIdentical, "its worktree was changed")
	sent := 2 + len(s.between)
	promise(e.prompts == sent, "its agent received %d prompts instead of %d", e.prompts, sent)
	promise(line.TurnOutcome == endTurn, "the turn that the outage met ended as %q instead of %q", line.TurnOutcome, endTurn)
	for _, key := range s.between {
		outcome, ok := outcomeOf(e.transcript, key)
		promise(ok && outcomeText(outcome) == endTurn, "the turn %s ended as %q instead of %q", key, outcomeText(outcome), endTurn)
	}
	promise(e.view.ended(secondKey), "it is %s at the end", e.view.describe())
	promise(e.view.TaskState != recovery.TaskInterrupted && !interrupted(e.transitions), "it was marked interrupted")
	promise(s.kind != KindAsk || allowed(e.transcript), "its agent did not get the answer to its permission request")
	return line, broken
}

const endTurn = "end_turn"

func outcomeText(o wire.TurnOutcome) string {
	if o.Error != "" {
		return "error: " + o.Error
	}
	return o.StopReason
}

func interrupted(transitions []userapi.Transition) bool {
	for _, t := range transitions {
		if t.To == recovery.StateInterrupted {
			return true
		}
	}
	return false
}

// allowed reports whether the agent said that it was allowed what it asked.
func allowed(transcript []userapi.Event) bool {
	for _, e := range transcript {
		if wire.EventKind(e.Kind) == wire.EventUpdate && strings.Contains(string(e.Payload), "chose "+fakeagent.OptionAllow) {
			return true
		}
	}
	return false
}
