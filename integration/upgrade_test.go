package integration

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/ownership"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
	"github.com/kandev/recovery/recovery"
)

// older and newer are the capability sets of other builds of the control server.
func older() []string {
	return slices.DeleteFunc(wire.Capabilities(), func(c string) bool { return c == wire.CapabilityTurnOutcome })
}

func newer() []string { return append(wire.Capabilities(), "something.new") }

// builtWith has the world start its control servers from a build that advertises
// the set, and returns what takes this back. Builds are kept for other tests.
func (w *world) builtWith(name string, capabilities []string) (released func()) {
	w.t.Helper()
	program := filepath.Join(filepath.Dir(programs.agentctl), name)
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		set := "-X github.com/kandev/recovery/agentctl/wire.advertised=" + strings.Join(capabilities, ",")
		out, err := exec.Command("go", "build", "-o", program, "-ldflags", set, "../cmd/agentctl").CombinedOutput()
		require.NoError(w.t, err, "%s", out)
	}
	w.settings["KANDEV_AGENTCTL_EXECUTABLE"] = program
	return func() { w.settings["KANDEV_AGENTCTL_EXECUTABLE"] = programs.agentctl }
}

// O-004.1 to O-004.6, O-003.5: a survivor of an older build, which lacks what
// this backend requires, proves itself, is told by the ownership shutdown to end
// with its agents, then has its records repaired, and then a server of this
// build is started.
func TestAnOlderServerIsEndedAndItsRecordsRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	released := w.builtWith("older", older())
	s := besiege(w)
	require.Equal(t, older(), s.record.Capabilities)
	released()

	status := w.start().serving().status
	pass := status.Recovery
	require.Equal(t, recovery.VerdictIncompatible, pass.Verdict)
	require.Equal(t, recovery.RefusedCapabilityIncompatibility, pass.Reason)
	require.Equal(t, []string{wire.CapabilityTurnOutcome}, pass.MissingCapabilities)
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeStale: 1}, pass.Counts)
	require.Empty(t, pass.UnendedServer)
	require.True(t, gone(s.record.PID, s.record.ProcessStart))
	require.True(t, gone(s.agent.pid, w.seen[s.agent.pid]))
	s.resumable()
	own, _ := s.recorded()
	require.Equal(t, wire.Capabilities(), own.Capabilities, "the observed set is recorded")

	old, fresh := s.life(s.record.ServerIdentity), s.life(own.ServerIdentity)
	require.Equal(t, ownership.ReasonRequested, old.reason)
	history, err := w.backend.client.Transitions(t.Context(), s.agent.session)
	require.NoError(t, err)
	repaired := history[len(history)-1]
	require.Equal(t, status.BootID, repaired.BootID)
	require.Less(t, old.ended, repaired.At)
	require.Less(t, repaired.At, fresh.started)
}

// O-004.3, W-3: a boot that dies while an older server ends, or before its
// records are repaired, leaves that to the next one.
func TestAnOlderServerIsEndedAcrossACrash(t *testing.T) {
	steps := []string{"ended"}
	if long() {
		steps = []string{"ending", "ended"}
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			released := w.builtWith("older", older())
			s := besiege(w)
			released()
			w.start("KANDEV_CRASH_AT=adoption." + step).died()
			session, err := s.db.GetSession(t.Context(), s.installation(), s.agent.session)
			require.NoError(t, err)
			require.Equal(t, recovery.StateRunning, session.State, "nothing is repaired before the server has ended")
			w.eventually("the old server ends", func() bool { return gone(s.record.PID, s.record.ProcessStart) })
			require.False(t, w.start().serving().status.Control.Adopted)
			s.resumable()
		})
	}
}

// life is when and why a control server lived, by its own diagnostic log.
type life struct {
	started, ended time.Time
	reason         ownership.Reason
}

func (s *siege) life(identity string) life {
	s.t.Helper()
	log, err := os.ReadFile(s.record.LogPath)
	require.NoError(s.t, err)
	var found life
	for line := range bytes.Lines(log) {
		var entry struct {
			At       time.Time        `json:"time"`
			Identity string           `json:"server_identity"`
			Reason   ownership.Reason `json:"reason"`
		}
		require.NoError(s.t, json.Unmarshal(line, &entry))
		if entry.Identity != identity {
			continue
		}
		if found.started.IsZero() {
			found.started = entry.At
		}
		if entry.Reason != "" {
			found.reason = entry.Reason
		}
		found.ended = entry.At
	}
	return found
}

// O-004.1: a newer server that can do all that is required, and more, is adopted.
func TestANewerServerIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	released := w.builtWith("newer", newer())
	s := besiege(w)
	require.Equal(t, newer(), s.record.Capabilities)
	released()
	s.endures()
}

// O-004.7: a proven server that lacks a capability and cannot be ended, because
// it fails to or does not know how, is asked as often as the budget of a stop
// allows and left alone then: named, nothing of it repaired, its credential kept,
// an own server on another port.
func TestAServerThatCannotBeEndedIsLeftAlone(t *testing.T) {
	t.Parallel()
	failures := map[string]wire.Code{"fails": wire.CodeInternal, "knows no such operation": wire.CodeNotFound}
	w := newWorld(t)
	s := besiege(w)
	for name, code := range failures {
		t.Run(name, func(t *testing.T) {
			w.within(t)
			defer s.mend()
			p := genuine(t, s, older(), func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(code.Status())
				answer(rw, wire.ErrorBody{Error: &wire.Error{Code: code, Message: "no"}})
			})
			s.name(p)
			secret := s.sealed()
			pass := s.start("KANDEV_ACP_RECOVERY_READ_RETRIES=1").serving().status.Recovery
			require.Equal(t, recovery.VerdictIncompatible, pass.Verdict)
			require.Equal(t, s.record.ServerIdentity, pass.UnendedServer)
			s.standsAlone(secret, p.port(t))
			require.Equal(t, 2, shutdowns(t, p, s.token))
		})
	}
	s.endures()
}

// shutdowns counts what a proven server was asked beside its proof, which must
// be the ownership shutdown and nothing else.
func shutdowns(t *testing.T, p *peer, token string) int {
	t.Helper()
	count := 0
	for _, r := range p.requests(t) {
		if r.path != wire.RouteShutdown {
			p.isVerification(t, r)
			continue
		}
		require.Equal(t, "Bearer "+token, r.header.Get(wire.HeaderCredential))
		count++
	}
	return count
}

// genuine is a server that holds the credential and proves it, with a set of
// capabilities of its own; what else is asked, it answers as the test says.
func genuine(t *testing.T, s *siege, capabilities []string, other http.HandlerFunc) *peer {
	t.Helper()
	p := listenTLS(t)
	self := s.identity()
	self.Capabilities = capabilities
	p.serveHTTP(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case wire.RouteIdentity:
			answer(rw, self)
		case wire.RouteProve:
			s.prove(rw, r, p.endpoint(), self)
		default:
			other(rw, r)
		}
	})
	return p
}

// prove answers a challenge with the credential of the besieged server.
func (s *siege) prove(rw http.ResponseWriter, r *http.Request, endpoint string, self wire.Identity) {
	var asked wire.ProveRequest
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		panic(http.ErrAbortHandler)
	}
	challenge, err := base64.StdEncoding.DecodeString(asked.Challenge)
	if err != nil {
		panic(err)
	}
	material, err := exporter(r)
	if err != nil {
		panic(err)
	}
	proof, err := credential.Proof(s.token, credential.Statement{
		Challenge: challenge, RotationID: asked.RotationID, Home: s.resolved, Endpoint: endpoint,
		ServerIdentity: self.ServerIdentity, Capabilities: self.Capabilities, UnownedPeriodMS: self.UnownedPeriodMS,
		Exporter: material,
	})
	if err != nil {
		panic(err)
	}
	answer(rw, wire.ProveResponse{Answer: base64.StdEncoding.EncodeToString(proof), Identity: self})
}
