package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// Report is what a run measured. OK is true exactly if no promise was broken.
type Report struct {
	OK                  bool            `json:"ok"`
	Mode                string          `json:"mode"`                  // sigkill, graceful or chaos
	Rounds              int             `json:"rounds"`                // of the chaos: backends that were started and killed
	KillsDuringRecovery int             `json:"kills_during_recovery"` // those of them that did not serve yet
	Seed                uint32          `json:"seed"`
	Agents              int             `json:"agents"`
	Adopted             bool            `json:"adopted"`
	PIDsUnchanged       bool            `json:"pids_unchanged"`
	EventsProduced      int             `json:"events_produced"`
	EventsCommitted     int             `json:"events_committed"`
	Gaps                int             `json:"gaps"`
	Duplicates          int             `json:"duplicates"`
	AgentStarts         int             `json:"agent_starts"`     // since the backend went away
	ProviderResumes     int             `json:"provider_resumes"` // since the backend went away
	OutageMS            int64           `json:"outage_ms"`        // from the last end of a backend to the start of the next
	RecoveryMS          int64           `json:"recovery_ms"`      // from that start until every session was usable
	WorktreesIdentical  bool            `json:"worktrees_identical"`
	TemporalUI          string          `json:"temporal_ui"` // of the adoption
	Sessions            []SessionReport `json:"sessions"`
	BrokenPromises      []string        `json:"broken_promises"`

	killed time.Time // when the backend was told to end
}

// SessionReport is one line of the table.
type SessionReport struct {
	Session           string `json:"session"`
	Kind              Kind   `json:"kind"`
	PIDBefore         int    `json:"pid_before"`
	PIDAfter          int    `json:"pid_after"`
	EventsProduced    int    `json:"events_produced"`
	EventsCommitted   int    `json:"events_committed"`
	Gaps              int    `json:"gaps"`
	Duplicates        int    `json:"duplicates"`
	State             string `json:"state"`
	TurnOutcome       string `json:"turn_outcome"` // of the turn that the outage met
	WorktreeIdentical bool   `json:"worktree_identical"`
}

// total sums the sessions up and draws the conclusion.
func (r *Report) total() {
	r.Agents = len(r.Sessions)
	r.PIDsUnchanged, r.WorktreesIdentical = true, true
	for _, s := range r.Sessions {
		r.EventsProduced += s.EventsProduced
		r.EventsCommitted += s.EventsCommitted
		r.Gaps += s.Gaps
		r.Duplicates += s.Duplicates
		r.PIDsUnchanged = r.PIDsUnchanged && s.PIDBefore == s.PIDAfter && s.PIDBefore != 0
		r.WorktreesIdentical = r.WorktreesIdentical && s.WorktreeIdentical
	}
	r.OK = len(r.BrokenPromises) == 0
}

func (r *Report) broke(format string, args ...any) {
	r.BrokenPromises = append(r.BrokenPromises, fmt.Sprintf(format, args...))
}

// WriteJSON writes the report to a file.
func (r *Report) WriteJSON(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Print writes the report for a reader.
func (r *Report) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nSESSION\tKIND\tPID BEFORE\tPID AFTER\tPRODUCED\tCOMMITTED\tGAPS\tDUPLICATES\tSTATE\tTURN OUTCOME\tWORKTREE")
	for _, s := range r.Sessions {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", s.Session, s.Kind, s.PIDBefore, s.PIDAfter,
			s.EventsProduced, s.EventsCommitted, s.Gaps, s.Duplicates, s.State, s.TurnOutcome, identical(s.WorktreeIdentical))
	}
	fmt.Fprintf(table, "total\t\t\t\t%d\t%d\t%d\t%d\t\t\t%s\n\n", r.EventsProduced, r.EventsCommitted, r.Gaps, r.Duplicates, identical(r.WorktreesIdentical))
	if err := table.Flush(); err != nil {
		return err
	}
	facts := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(facts, "backend ended by\t%s\n", r.Mode)
	if r.Rounds > 0 {
		fmt.Fprintf(facts, "rounds of chaos\t%d, of which %d ended during recovery (seed %d)\n", r.Rounds, r.KillsDuringRecovery, r.Seed)
	}
	fmt.Fprintf(facts, "outage\t%s\n", milliseconds(r.OutageMS))
	fmt.Fprintf(facts, "recovery\t%s\n", milliseconds(r.RecoveryMS))
	fmt.Fprintf(facts, "agent starts since the outage\t%d\n", r.AgentStarts)
	fmt.Fprintf(facts, "provider resumes since the outage\t%d\n", r.ProviderResumes)
	fmt.Fprintf(facts, "adoption in Temporal's UI\t%s\n", r.TemporalUI)
	if err := facts.Flush(); err != nil {
		return err
	}
	for _, promise := range r.BrokenPromises {
		fmt.Fprintln(out, "BROKEN PROMISE:", promise)
	}
	if r.OK {
		fmt.Fprintln(out, "\nEvery promise was kept.")
	}
	return nil
}

func milliseconds(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

func identical(yes bool) string {
	if yes {
		return "identical"
	}
	return "CHANGED"
}
