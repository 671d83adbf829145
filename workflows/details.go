package workflows

import (
	"fmt"
	"sort"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// collect returns every outcome, in order of session id, marked where a stop is
// still in flight.
func (a *adoption) collect() []calls.SessionOutcome {
	out := make([]calls.SessionOutcome, 0, len(a.outcomes))
	for session, o := range a.outcomes {
		o.StopInFlight = a.inFlight[session] > 0
		out = append(out, o)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].SessionID < out[j].SessionID })
	return out
}

// summarise fills the report and shows operators what happened per session
// (W-5). Both are bounded.
func (a *adoption) summarise() {
	outcomes := a.collect()
	a.report.Counts, a.report.Others = map[recovery.SessionOutcome]int{}, nil
	for _, o := range outcomes {
		a.report.Counts[o.Outcome]++
		if o.Outcome != recovery.OutcomeRetracked && len(a.report.Others) < calls.ReportedSessions {
			a.report.Others = append(a.report.Others, o)
		}
	}
	workflow.SetCurrentDetails(a.ctx, a.table(outcomes))
}

func (a *adoption) table(outcomes []calls.SessionOutcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "verdict **%s**", a.report.Verdict)
	if a.report.Reason != "" {
		fmt.Fprintf(&b, " (%s)", a.report.Reason)
	}
	if a.report.UnendedServer != "" {
		fmt.Fprintf(&b, ", server %s could not be ended (%s)", a.report.UnendedServer, a.report.UnendedReason)
	}
	fmt.Fprintf(&b, ", stopped %d, could not be stopped %d\n\n| session | outcome | instance |\n|---|---|---|\n",
		a.report.Stopped, a.report.Unstopped)
	for i, o := range outcomes {
		if i == calls.ReportedSessions {
			fmt.Fprintf(&b, "\nand %d more\n", len(outcomes)-i)
			break
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", o.SessionID, o.Outcome, o.Instance)
	}
	return b.String()
}
