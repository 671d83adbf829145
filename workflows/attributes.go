package workflows

import (
	"sort"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Typed search attributes, by which operators find workflows (W-5). They hold
// ids and words of the product and nothing else (W-4). Installation and session
// are set at the start; outcome and refusal when a pass has ended.
var (
	AttributeInstallation = temporal.NewSearchAttributeKeyKeyword("KandevInstallation")
	AttributeSession      = temporal.NewSearchAttributeKeyKeyword("KandevSession")
	// AttributeOutcome lists the verdict on the recorded control server and each
	// outcome that at least one session had.
	AttributeOutcome = temporal.NewSearchAttributeKeyKeywordList("KandevOutcome")
	// AttributeRefusal is set when the recorded control server was refused.
	AttributeRefusal = temporal.NewSearchAttributeKeyKeyword("KandevRefusal")
)

// label makes an ended pass findable by how it ended. A namespace without the
// attributes cannot complete a workflow task that sets one, so a run that was
// started without them sets none, and one that was started with them does it
// last: what cannot be labelled is recovered all the same (B-25). For the same
// reason the children of a pass, its stops, carry none.
func (a *adoption) label() {
	if _, labelled := workflow.GetTypedSearchAttributes(a.ctx).GetKeyword(AttributeInstallation); !labelled {
		return
	}
	updates := []temporal.SearchAttributeUpdate{AttributeOutcome.ValueSet(a.endings())}
	if a.report.Reason != "" {
		updates = append(updates, AttributeRefusal.ValueSet(string(a.report.Reason)))
	}
	if err := workflow.UpsertTypedSearchAttributes(a.ctx, updates...); err != nil {
		workflow.GetLogger(a.ctx).Warn("search attributes not set", "error", err)
	}
}

// endings are the verdict and the outcomes that occurred, in a fixed order.
func (a *adoption) endings() []string {
	outcomes := make([]string, 0, len(a.report.Counts))
	for outcome := range a.report.Counts {
		outcomes = append(outcomes, string(outcome))
	}
	sort.Strings(outcomes)
	return append([]string{string(a.report.Verdict)}, outcomes...)
}
