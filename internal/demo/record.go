package demo

import (
	"fmt"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/userapi"
)

// record is what the agents say about themselves, in files that neither the
// control server nor the backend knows of.
type record struct{ state, log, program string }

const profileID = "demo"

func (r record) profile() userapi.Profile {
	return userapi.Profile{ID: profileID, Agent: "fakeagent", Command: []string{r.program},
		Env: map[string]string{fakeagent.EnvState: r.state, fakeagent.EnvLog: r.log}}
}

// byTree returns the agents' own histories by the worktree that they work in.
// Two conversations in one worktree are a fault of their own.
func (r record) byTree() (map[string]fakeagent.History, error) {
	all, err := fakeagent.ReadHistories(r.state)
	if err != nil {
		return nil, err
	}
	trees := make(map[string]fakeagent.History, len(all))
	for _, h := range all {
		// A history whose first line is still being written belongs to nobody yet.
		if h.Cwd() == "" {
			continue
		}
		if _, twice := trees[h.Cwd()]; twice {
			return nil, fmt.Errorf("two conversations were begun in one worktree (%s)", h.SessionID)
		}
		trees[h.Cwd()] = h
	}
	return trees, nil
}

// since counts the calls after a time that a survivor must not see.
type since struct{ starts, news, reopened int }

func (r record) since(t time.Time) (since, error) {
	calls, err := fakeagent.ReadCalls(r.log)
	if err != nil {
		return since{}, err
	}
	var s since
	for _, c := range calls {
		if c.At.Before(t) {
			continue
		}
		switch c.Method {
		case fakeagent.MethodStart:
			s.starts++
		case acp.AgentMethodSessionNew:
			s.news++
		case acp.AgentMethodSessionLoad, acp.AgentMethodSessionResume:
			s.reopened++
		}
	}
	return s, nil
}

// prompts counts the prompts that each provider session received (B-17).
func (r record) prompts() (map[string]int, error) {
	calls, err := fakeagent.ReadCalls(r.log)
	if err != nil {
		return nil, err
	}
	count := make(map[string]int)
	for _, c := range calls {
		if c.Method == acp.AgentMethodSessionPrompt {
			count[c.SessionID]++
		}
	}
	return count, nil
}
