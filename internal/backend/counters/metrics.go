package counters

import "github.com/kandev/recovery/recovery"

// metric is one counted thing: its counter, and the message of the log line that
// every count writes. Both are interfaces that operators build on.
type metric struct {
	name  string // of the counter, without prefix
	event string
	help  string
	label string // name of the counter's one label; none when empty
	// values are those that the label is known to take: their series begin at 0,
	// so that a rate sees the first count.
	values []string
}

// prefix of every counter's name.
const prefix = "kandev_recovery_"

var (
	attempted = metric{
		name: "adoptions_attempted_total", event: "adoption attempted",
		help: "Recovery passes that evaluated a recorded control server in order to adopt it.",
	}
	adopted = metric{
		name: "adoptions_total", event: "control server adopted",
		help: "Control servers of an earlier backend that were adopted.",
	}
	refused = metric{
		name: "adoptions_refused_total", event: "adoption refused",
		help:  "Recorded control servers that were not adopted, by reason.",
		label: "reason", values: []string{
			string(recovery.RefusedNoAnswer), string(recovery.RefusedIdentityMismatch),
			string(recovery.RefusedCredentialUnavailable), string(recovery.RefusedAuthenticationFailure),
			string(recovery.RefusedCapabilityIncompatibility), string(recovery.RefusedCredentialRotationFailure),
		},
	}
	detached = metric{
		name: "servers_detached_total", event: "control server detached",
		help: "Control servers that were started to outlive the backend.",
	}
	retracked = metric{
		name: "instances_retracked_total", event: "instance re-tracked",
		help: "Surviving instances that are tracked again.",
	}
	missing = metric{
		name: "missing_values_total", event: "value missing",
		help:  "Sessions that were not re-tracked because a source lacked a value, by the first such value.",
		label: "value", values: restored(),
	}
	exhausted = metric{
		name: "reads_exhausted_total", event: "reads exhausted",
		help: "Sessions that were not re-tracked because the read budget was exhausted.",
	}
	overdue = metric{
		name: "deadline_cut_total", event: "cut by the deadline",
		help: "Sessions that were not re-tracked because the recovery deadline came first.",
	}
	duplicates = metric{
		name: "duplicates_stopped_total", event: "duplicate stopped",
		help: "Instances that were stopped beside the one that was re-tracked.",
	}
	ambiguous = metric{
		name: "ambiguous_joins_total", event: "ambiguous join",
		help: "Sessions with several instances of which none was chosen.",
	}
	unstopped = metric{
		name: "sessions_unstopped_total", event: "agent unstopped",
		help: "Sessions of which an agent could not be stopped.",
	}
	launches = metric{
		name: "launches_refused_total", event: "launch refused",
		help:  "Refusals to give a session its agent or to reach it, repeated attempts included, by reason.",
		label: "reason", values: []string{
			string(recovery.LaunchRefusedRecovering), string(recovery.LaunchRefusedUnstopped), string(recovery.LaunchRefusedTracked),
		},
	}
	superseded = metric{
		name: "credentials_superseded_total", event: "superseded credential rejected",
		help: "Control servers that rejected this backend's credential because another one drives them.",
	}
)

func metrics() []metric {
	return []metric{
		attempted, adopted, refused, detached, retracked, missing, exhausted, overdue, duplicates, ambiguous, unstopped,
		launches, superseded,
	}
}

func restored() []string {
	var values []string
	for _, r := range recovery.RestoredValues() {
		values = append(values, string(r.Value))
	}
	return values
}
