package recovery

// Presence says whether an instance was found where one was looked for.
type Presence string

// Presences. PresenceUnread is an enumeration, or a look at a process, that gave
// no answer: it is never absence.
const (
	Present        Presence = "present"
	Absent         Presence = "absent"
	PresenceUnread Presence = "unread"
)

// RecordedServer says what became of the recorded control server when this boot
// did not adopt it.
type RecordedServer string

// Fates of a recorded server. ServerAdopted: it was adopted.
// ServerLeftRunning: something answered at its endpoint and was left alone.
// ServerEnded: it proved to be ours and was ended. ServerSilent: nothing
// answered, or none was recorded.
const (
	ServerAdopted     RecordedServer = "adopted"
	ServerLeftRunning RecordedServer = "left_running"
	ServerEnded       RecordedServer = "ended"
	ServerSilent      RecordedServer = "silent"
)

// LivenessFacts are what is known of one standalone record outside a pass.
type LivenessFacts struct {
	OutcomesComplete bool // the pass of this boot has an outcome for every record
	StopInFlight     bool
	SurvivalOff      bool
	CreatedHere      bool           // the record was begun by this boot
	Elsewhere        bool           // the record names another server than the one in use
	Server           RecordedServer // the fate of the server that it was inherited with
	Instance         Presence       // in an enumeration of the server in use
	Process          Presence       // the recorded process, by pid and start identity
}

// Judge decides whether a record's agent lives (S-003.6). A record is judged by
// whether its own instance is present, never by whether the shared server runs.
// Records of this boot are judged against the server in use, unless they were
// created on one before it; inherited ones only against an adopted server. Whatever else stays open, a recorded process
// that is proven gone is dead.
func Judge(f LivenessFacts) Liveness {
	if f.StopInFlight || !f.OutcomesComplete {
		return Unknown
	}
	verdict := f.byServer()
	if verdict == Unknown && f.Process == Absent {
		return Dead
	}
	return verdict
}

func (f LivenessFacts) byServer() Liveness {
	switch {
	case f.SurvivalOff:
		return livenessOf(f.Process)
	case f.Elsewhere && (f.CreatedHere || f.Server == ServerAdopted):
		return livenessOf(f.Process) // the enumeration of another server says nothing of it
	case f.CreatedHere, f.Server == ServerAdopted:
		return livenessOf(f.Instance)
	case f.Server == ServerLeftRunning:
		return Unknown
	case f.Server == ServerEnded:
		return Dead
	default:
		return livenessOf(f.Process)
	}
}

func livenessOf(p Presence) Liveness {
	switch p {
	case Present:
		return Live
	case Absent:
		return Dead
	default:
		return Unknown
	}
}

// ServerFate derives what became of the recorded server from the result of the
// pass.
func ServerFate(verdict Verdict, reason RefusalReason, adopted, unended bool) RecordedServer {
	switch {
	case adopted:
		return ServerAdopted
	case unended:
		return ServerLeftRunning
	case verdict == VerdictIncompatible:
		return ServerEnded
	case verdict == VerdictRefused && reason != RefusedNoAnswer:
		return ServerLeftRunning
	default:
		return ServerSilent
	}
}
