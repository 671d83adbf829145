package demo

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/fakeagent"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// kept is the evidence of a session whose promises were all kept.
func kept() evidence {
	return evidence{
		session: &session{kind: KindStream, id: "s1", pid: 42, start: "boot:7", print: "aa"},
		view: view{
			ID: "s1", State: recovery.StateWaitingForInput, TaskState: recovery.TaskReview,
			Agent: &userapi.Agent{PID: 42}, Turn: &userapi.Turn{Key: secondKey, State: recovery.TurnEnded},
		},
		history: fakeagent.History{Entries: []fakeagent.Entry{
			{Role: fakeagent.RoleOpened}, {Role: fakeagent.RoleUser}, {Role: fakeagent.RoleAgent, N: 1}, {Role: fakeagent.RoleEnd},
		}},
		prompts:     2,
		transcript:  events(started, 1, ended),
		transitions: []userapi.Transition{{To: recovery.StateRunning}},
		start:       "boot:7",
		print:       "aa",
	}
}

func TestJudge(t *testing.T) {
	line, broken := judge(kept())
	require.Empty(t, broken)
	require.Equal(t, SessionReport{
		Session: "s1", Kind: KindStream, PIDBefore: 42, PIDAfter: 42, EventsProduced: 2, EventsCommitted: 2,
		State: "WAITING_FOR_INPUT", TurnOutcome: "end_turn", WorktreeIdentical: true,
	}, line)
}

// Every promise that the demo makes is one that it can see broken.
func TestJudgeSeesEveryBrokenPromise(t *testing.T) {
	cases := map[string]func(*evidence){
		"its agent was process 42 and is 0":  func(e *evidence) { e.view.Agent = nil },
		"its agent was process 42 and is 43": func(e *evidence) { e.view.Agent = &userapi.Agent{PID: 43} },
		"process 42 is not the agent":        func(e *evidence) { e.start = "boot:99" },
		"its transcript is not what":         func(e *evidence) { e.transcript = events(started, 1, 1, ended) },
		"its worktree was changed":           func(e *evidence) { e.print = "bb" },
		"its agent received 3 prompts":       func(e *evidence) { e.prompts = 3 },
		"its agent received 2 prompts":       func(e *evidence) { e.session.between = []string{"x"} },
		"the turn x ended as \"\"":           func(e *evidence) { e.session.between = []string{"x"}; e.prompts = 3 },
		"the turn that the outage met ended": func(e *evidence) { e.transcript = events(started, 1) },
		"it is INTERRUPTED":                  func(e *evidence) { e.view.State = recovery.StateInterrupted },
		"it was marked interrupted":          func(e *evidence) { e.transitions[0].To = recovery.StateInterrupted },
		"its agent did not get the answer":   func(e *evidence) { e.session.kind = KindAsk },
	}
	for text, spoil := range cases {
		t.Run(text, func(t *testing.T) {
			e := kept()
			spoil(&e)
			_, broken := judge(e)
			require.Contains(t, strings.Join(broken, "\n"), text)
		})
	}
	interruptedTask := kept()
	interruptedTask.view.TaskState = recovery.TaskInterrupted
	_, broken := judge(interruptedTask)
	require.Len(t, broken, 1)
}

func TestReportTotalsAndKeys(t *testing.T) {
	good, _ := judge(kept())
	bad := good
	bad.PIDAfter, bad.Gaps, bad.WorktreeIdentical = 7, 1, false
	r := Report{Mode: "sigkill", Sessions: []SessionReport{good, good}, BrokenPromises: []string{}}
	r.total()
	require.True(t, r.OK && r.PIDsUnchanged && r.WorktreesIdentical)
	require.Equal(t, 4, r.EventsProduced)

	r.Sessions = append(r.Sessions, bad)
	r.broke("something")
	r.total()
	require.False(t, r.OK || r.PIDsUnchanged || r.WorktreesIdentical)

	file := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, r.WriteJSON(file))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var keys map[string]any
	require.NoError(t, json.Unmarshal(content, &keys))
	for _, key := range []string{
		"ok", "agents", "sessions", "events_produced", "events_committed", "gaps", "duplicates", "agent_starts",
		"provider_resumes", "outage_ms", "recovery_ms", "worktrees_identical", "adopted", "pids_unchanged",
		"temporal_ui", "mode", "broken_promises", "rounds", "kills_during_recovery", "seed",
	} {
		require.Contains(t, keys, key)
	}
	var out bytes.Buffer
	require.NoError(t, r.Print(&out))
	require.Contains(t, out.String(), "BROKEN PROMISE: something")
}

func TestFingerprintSeesEveryChange(t *testing.T) {
	changes := map[string]func(tree string) error{
		"content": func(tree string) error {
			return os.WriteFile(filepath.Join(tree, "README.md"), []byte("# A pr0ject\n"), 0o644)
		},
		"mode":      func(tree string) error { return os.Chmod(filepath.Join(tree, "run.sh"), 0o644) },
		"new file":  func(tree string) error { return os.WriteFile(filepath.Join(tree, "new"), nil, 0o644) },
		"new link":  func(tree string) error { return os.Symlink("README.md", filepath.Join(tree, "link")) },
		"lost file": func(tree string) error { return os.Remove(filepath.Join(tree, "uncommitted.txt")) },
		"git link": func(tree string) error {
			return os.WriteFile(filepath.Join(tree, ".git"), []byte("gitdir: /elsewhere\n"), 0o644)
		},
		"renamed": func(tree string) error {
			return os.Rename(filepath.Join(tree, "src"), filepath.Join(tree, "source"))
		},
	}
	trees, err := worktrees(t.Context(), t.TempDir(), len(changes))
	require.NoError(t, err)
	before, err := fingerprints(trees)
	require.NoError(t, err)
	again, err := fingerprints(trees)
	require.NoError(t, err)
	require.Equal(t, before, again)
	i := 0
	for name, change := range changes {
		require.NoError(t, change(trees[i]), name)
		after, err := Fingerprint(trees[i])
		require.NoError(t, err)
		require.NotEqual(t, before[i], after, name)
		i++
	}
	_, err = Fingerprint(filepath.Join(trees[0], "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAgentCountIsChecked(t *testing.T) {
	for _, agents := range []int{0, MaxAgents + 1} {
		_, err := Run(t.Context(), Options{Agents: agents, Out: &bytes.Buffer{}})
		require.Error(t, err)
	}
}

func TestRoundCountIsChecked(t *testing.T) {
	for _, rounds := range []int{0, MaxRounds + 1} {
		_, err := Run(t.Context(), Options{Agents: 1, Chaos: true, Rounds: rounds, Out: &bytes.Buffer{}})
		require.ErrorContains(t, err, "rounds")
	}
}

func TestSurroundingsKeepNoSettings(t *testing.T) {
	require.Equal(t, []string{"PATH=/bin"}, surroundings([]string{"KANDEV_HOME=/x", "PATH=/bin", "TEMPORAL_ADDRESS=y"}))
}
