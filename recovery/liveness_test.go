package recovery

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// S-003.6: every row of the decision.
func TestJudge(t *testing.T) {
	cases := []struct {
		name  string
		facts LivenessFacts
		want  Liveness
	}{
		{"before outcomes are complete", LivenessFacts{Instance: Absent, Process: Absent}, Unknown},
		{"a stop is in flight", LivenessFacts{OutcomesComplete: true, StopInFlight: true, Instance: Absent, Process: Absent}, Unknown},

		{"off, process there", LivenessFacts{OutcomesComplete: true, SurvivalOff: true, Process: Present}, Live},
		{"off, process gone", LivenessFacts{OutcomesComplete: true, SurvivalOff: true, Process: Absent}, Dead},
		{"off, process not known", LivenessFacts{OutcomesComplete: true, SurvivalOff: true, Process: PresenceUnread}, Unknown},

		{"adopted, instance there", LivenessFacts{OutcomesComplete: true, Server: ServerAdopted, Instance: Present, Process: PresenceUnread}, Live},
		{"adopted, instance not there", LivenessFacts{OutcomesComplete: true, Server: ServerAdopted, Instance: Absent, Process: PresenceUnread}, Dead},
		{"adopted, enumeration unread", LivenessFacts{OutcomesComplete: true, Server: ServerAdopted, Instance: PresenceUnread, Process: Present}, Unknown},
		{"adopted, enumeration unread, process gone", LivenessFacts{OutcomesComplete: true, Server: ServerAdopted, Instance: PresenceUnread, Process: Absent}, Dead},

		{"adopted, record of another server, process there", LivenessFacts{OutcomesComplete: true, Server: ServerAdopted, Elsewhere: true, Instance: Absent, Process: Present}, Live},
		{"adopted, record of another server, process gone", LivenessFacts{OutcomesComplete: true, Server: ServerAdopted, Elsewhere: true, Instance: Present, Process: Absent}, Dead},
		{"adopted, record of another server, process not known", LivenessFacts{OutcomesComplete: true, Server: ServerAdopted, Elsewhere: true, Instance: Absent, Process: PresenceUnread}, Unknown},

		{"created here, instance there", LivenessFacts{OutcomesComplete: true, CreatedHere: true, Server: ServerSilent, Instance: Present, Process: PresenceUnread}, Live},
		{"created here, instance not there", LivenessFacts{OutcomesComplete: true, CreatedHere: true, Server: ServerSilent, Instance: Absent, Process: PresenceUnread}, Dead},

		{"created here on a server before, process there", LivenessFacts{OutcomesComplete: true, CreatedHere: true, Elsewhere: true, Server: ServerSilent, Instance: Absent, Process: Present}, Live},
		{"created here on a server before, process gone", LivenessFacts{OutcomesComplete: true, CreatedHere: true, Elsewhere: true, Server: ServerSilent, Instance: Present, Process: Absent}, Dead},
		{"created here on a server before, process not known", LivenessFacts{OutcomesComplete: true, CreatedHere: true, Elsewhere: true, Server: ServerSilent, Instance: Absent, Process: PresenceUnread}, Unknown},

		{"inherited, left running: the own server says nothing of it", LivenessFacts{OutcomesComplete: true, Server: ServerLeftRunning, Instance: Absent, Process: Present}, Unknown},
		{"inherited, left running, process gone", LivenessFacts{OutcomesComplete: true, Server: ServerLeftRunning, Instance: Absent, Process: Absent}, Dead},
		{"inherited, server ended", LivenessFacts{OutcomesComplete: true, Server: ServerEnded, Instance: Absent, Process: PresenceUnread}, Dead},
		{"inherited, silent, process there", LivenessFacts{OutcomesComplete: true, Server: ServerSilent, Instance: Absent, Process: Present}, Live},
		{"inherited, silent, process gone", LivenessFacts{OutcomesComplete: true, Server: ServerSilent, Instance: Absent, Process: Absent}, Dead},
		{"inherited, silent, process not known", LivenessFacts{OutcomesComplete: true, Server: ServerSilent, Instance: Absent, Process: PresenceUnread}, Unknown},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Judge(c.facts)) })
	}
}

// S-003.6: "dead" is never said without an answer that proves it.
func TestDeadNeedsProof(t *testing.T) {
	presences := []Presence{Present, Absent, PresenceUnread}
	rapid.Check(t, func(t *rapid.T) {
		f := LivenessFacts{
			OutcomesComplete: rapid.Bool().Draw(t, "complete"), StopInFlight: rapid.Bool().Draw(t, "stopping"),
			SurvivalOff: rapid.Bool().Draw(t, "off"), CreatedHere: rapid.Bool().Draw(t, "here"), Elsewhere: rapid.Bool().Draw(t, "elsewhere"),
			Server:   rapid.SampledFrom([]RecordedServer{ServerAdopted, ServerLeftRunning, ServerEnded, ServerSilent}).Draw(t, "server"),
			Instance: rapid.SampledFrom(presences).Draw(t, "instance"), Process: rapid.SampledFrom(presences).Draw(t, "process"),
		}
		if Judge(f) == Dead {
			require.True(t, f.OutcomesComplete && !f.StopInFlight)
			require.True(t, f.Process == Absent || f.Server == ServerEnded || f.Instance == Absent)
		}
	})
}

// O-001.4, O-004.3, O-004.7, S-003.6: what the result of a pass says of the
// recorded server.
func TestServerFate(t *testing.T) {
	require.Equal(t, ServerAdopted, ServerFate(VerdictAdoptable, "", true, false))
	require.Equal(t, ServerSilent, ServerFate(VerdictFresh, "", false, false))
	require.Equal(t, ServerSilent, ServerFate(VerdictRefused, RefusedNoAnswer, false, false))
	require.Equal(t, ServerLeftRunning, ServerFate(VerdictRefused, RefusedAuthenticationFailure, false, false))
	require.Equal(t, ServerLeftRunning, ServerFate(VerdictRefused, RefusedCredentialUnavailable, false, false))
	require.Equal(t, ServerEnded, ServerFate(VerdictIncompatible, RefusedCapabilityIncompatibility, false, false))
	require.Equal(t, ServerLeftRunning, ServerFate(VerdictIncompatible, RefusedCapabilityIncompatibility, false, true))
	require.Equal(t, ServerLeftRunning, ServerFate(VerdictOff, "", false, true))
}
