package integration

import (
	"bufio"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/userapi"
)

// counted scrapes the running backend and returns the counters that are not zero.
func (w *world) counted() map[string]string {
	w.t.Helper()
	runtime, err := home.ReadRuntime(w.home)
	require.NoError(w.t, err)
	token, err := home.ReadToken(w.home)
	require.NoError(w.t, err)
	text, err := userapi.NewClient("http://"+runtime.Address, token).Metrics(w.t.Context())
	require.NoError(w.t, err)
	found := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		series, counted := strings.CutPrefix(lines.Text(), "kandev_recovery_")
		if name, value, _ := strings.Cut(series, " "); counted && strings.Contains(name, "_total") && value != "0" {
			found[name] = value
		}
	}
	return found
}

// W-9: a boot that starts a server of its own, one that refuses a stranger and one
// that adopts count what they decided, each from zero, and so does the one that
// another backend takes its server from (O-002.3).
func TestWhatABootDecidesIsCounted(t *testing.T) {
	w := newWorld(t)
	w.start().serving()
	require.Equal(t, map[string]string{"servers_detached_total": "1"}, w.counted())
	w.backend.kill()

	s := besiege(w)
	stranger := overHTTP(handles(yes))(t, s)
	s.name(stranger)
	s.start("KANDEV_AGENTCTL_PORT=" + stranger.port(t)).serving()
	refused(t, s.agent, userapi.CodeRecovering)
	require.Equal(t, map[string]string{
		"adoptions_attempted_total":                             "1",
		`adoptions_refused_total{reason="identity_mismatch"}`:   "1",
		"servers_detached_total":                                "1",
		`launches_refused_total{reason="recovery_in_progress"}`: "1",
	}, s.counted())
	s.mend()

	u := &unattended{world: w, db: s.db}
	u.dial()
	u.stray(s.agent.session, "duplicate")
	s.start().serving()
	adopting := map[string]string{
		"adoptions_attempted_total": "1", "adoptions_total": "1", "instances_retracked_total": "1", "duplicates_stopped_total": "1",
	}
	require.Equal(t, adopting, s.counted())

	// The rotation ends the agent's event stream, by which the backend finds out.
	s.takeOver()
	adopting["credentials_superseded_total"] = "1"
	s.eventually("the loss is counted", func() bool { return maps.Equal(adopting, s.counted()) })
}

// takeOver replaces the credential of the server in use, as another backend with
// this home's data does.
func (s *siege) takeOver() {
	s.t.Helper()
	record, token := s.recorded()
	server := client.New(client.Config{
		Endpoint: record.Endpoint, Fingerprint: record.Fingerprint, Credential: token, HTTPTimeout: patience,
	})
	defer server.Close()
	issued, err := server.Rotate(s.t.Context())
	require.NoError(s.t, err)
	record.RotationID = issued.RotationID
	require.NoError(s.t, s.db.PutControlServer(s.t.Context(), s.installation(), record, issued.Credential))
	_, err = server.WithCredential(issued.Credential).Confirm(s.t.Context(), issued.RotationID)
	require.NoError(s.t, err)
}
