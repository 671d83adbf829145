package workflows

import (
	"slices"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/recovery"
)

// storeLost notes that a call failed because Postgres did not answer, which says
// nothing of the control server or its agents: nothing is concluded from it, and
// another pass is due (O-001.9, O-002.5, S-003.7).
func (a *adoption) storeLost(err error) bool {
	lost := err != nil && failureType(err) == calls.FailureStoreLost
	a.lost = a.lost || lost
	return lost
}

// settleSessions gives every record its outcome, or leaves it to the deadline.
func (a *adoption) settleSessions() error {
	switch {
	case a.report.Adopted:
		return a.recoverSessions()
	case a.lost:
		a.settleUnknown()
		return nil
	default:
		return a.settleWithoutServer()
	}
}

// settleUnknown settles every session that nobody owns as one of which nothing
// was learnt: nothing is recovered, nothing stopped.
func (a *adoption) settleUnknown() {
	a.report.Again = a.lost
	for _, record := range a.records {
		outcome := recovery.OutcomeUnknown
		if record.OwnedBy != "" {
			outcome = record.OwnedBy
		}
		a.settle(calls.SessionOutcome{SessionID: record.SessionID, Outcome: outcome})
	}
}

// settleWithoutServer gives every record its outcome when no server was
// adopted. A server that answered and was left running may still drive its
// agents: unknown. One that was ended took its agents along: stale. Where
// nothing answered, only a recorded process that is proven gone makes a record
// stale (S-003.6).
func (a *adoption) settleWithoutServer() error {
	fate := recovery.ServerFate(a.report.Verdict, a.report.Reason, false, a.report.UnendedServer != "")
	outcome := recovery.OutcomeUnknown
	if fate == recovery.ServerEnded {
		outcome = recovery.OutcomeStale
	}
	probe := calls.ProbeInput{Pass: a.in.Pass}
	for _, record := range a.records {
		if record.OwnedBy != "" {
			a.settle(calls.SessionOutcome{SessionID: record.SessionID, Outcome: record.OwnedBy})
			continue
		}
		a.settle(calls.SessionOutcome{SessionID: record.SessionID, Outcome: outcome})
		probe.Sessions = append(probe.Sessions, record.SessionID)
	}
	if fate != recovery.ServerSilent || len(probe.Sessions) == 0 {
		return nil
	}
	var probed calls.Probed
	if err := a.until(calls.ProbeRecords, probe, "look for recorded processes", &probed); err != nil {
		return err
	}
	for _, session := range probed.Dead {
		a.settle(calls.SessionOutcome{SessionID: session, Outcome: recovery.OutcomeStale})
	}
	return nil
}

// doubtStale looks for the processes of sessions that are settled as stale and
// whose records name another server than the adopted one: their instances cannot
// be in its enumeration. One that may live under a server that was left alone is
// unknown (S-003.6).
func (a *adoption) doubtStale() error {
	if !a.report.Adopted {
		return nil
	}
	probe := calls.ProbeInput{Pass: a.in.Pass}
	for _, record := range a.records {
		elsewhere := record.ServerIdentity != "" && record.ServerIdentity != a.server
		if elsewhere && a.outcomes[record.SessionID].Outcome == recovery.OutcomeStale {
			probe.Sessions = append(probe.Sessions, record.SessionID)
		}
	}
	if len(probe.Sessions) == 0 {
		return nil
	}
	var probed calls.Probed
	if err := a.until(calls.ProbeRecords, probe, "look for processes of other servers", &probed); err != nil {
		return err
	}
	for _, session := range probe.Sessions {
		if !slices.Contains(probed.Dead, session) {
			a.settle(calls.SessionOutcome{SessionID: session, Outcome: recovery.OutcomeUnknown})
		}
	}
	return nil
}
