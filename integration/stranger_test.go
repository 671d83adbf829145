package integration

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

// stranger is a process at the recorded endpoint that is not ours. It keeps
// every byte that it was sent.
type stranger struct {
	mu       sync.Mutex
	received bytes.Buffer
}

func (s *stranger) keep(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received.Write(b)
}

func (s *stranger) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received.String()
}

// survivor is an adoptable control server with its record and credential.
func survivor(t *testing.T, w *world) (*agent, store.ControlServer, string) {
	t.Helper()
	w.start().serving()
	a := w.agent("survives")
	a.prompt("one", "stream until file go every 5ms")
	w.backend.kill()
	db := w.store()
	record, err := db.GetControlServer(t.Context(), w.backend.status.Installation)
	require.NoError(t, err)
	token, err := db.Credential(t.Context(), w.backend.status.Installation, record.SecretRef)
	require.NoError(t, err)
	return a, record, token
}

// move makes the record name another endpoint, as if a stranger had taken the
// port of a server that is gone.
func (w *world) move(endpoint, fingerprint string) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.settings["KANDEV_DATABASE_DSN"])
	require.NoError(w.t, err)
	defer conn.Close(w.t.Context())
	_, err = conn.Exec(w.t.Context(), `UPDATE control_server_records SET endpoint = $1, fingerprint = $2`, endpoint, fingerprint)
	require.NoError(w.t, err)
}

// end stops the server that the moved record does not name any more.
func end(t *testing.T, record store.ControlServer, token string) {
	t.Helper()
	peer := client.New(client.Config{Endpoint: record.Endpoint, Fingerprint: record.Fingerprint, Credential: token, HTTPTimeout: 10 * time.Second})
	defer peer.Close()
	require.NoError(t, peer.Shutdown(t.Context()))
}

// O-001.2, O-001.4, O-001.10, S-002.12: a process that took the recorded port
// and even the recorded certificate gets an identity request and a challenge,
// and nothing else: no credential, no rotation, no stop. The agents of the real
// server go on, and their session is left as it is.
func TestAStrangerIsToldNoSecret(t *testing.T) {
	w := newWorld(t)
	a, record, token := survivor(t, w)
	s := &stranger{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		s.keep(dump)
		answer := any(map[string]any{"rotation_id": 99, "credential": "stolen", "unowned_period_ms": 600_000})
		identity := wire.Identity{ServerIdentity: record.ServerIdentity, Capabilities: wire.Capabilities(), UnownedPeriodMS: 600_000}
		switch r.URL.Path {
		case wire.RouteIdentity:
			answer = identity
		case wire.RouteProve:
			answer = wire.ProveResponse{Answer: "bm90IGEgcHJvb2Y=", Identity: identity}
		}
		if err := json.NewEncoder(rw).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	server.StartTLS()
	defer server.Close()
	w.move(server.Listener.Addr().String(), credential.Fingerprint(server.Certificate().Raw))

	status := w.start().serving().status
	require.Equal(t, recovery.VerdictRefused, status.Recovery.Verdict)
	require.Equal(t, recovery.RefusedAuthenticationFailure, status.Recovery.Reason)
	require.Equal(t, map[recovery.SessionOutcome]int{recovery.OutcomeUnknown: 1}, status.Recovery.Counts)
	require.False(t, status.Control.Adopted)

	heard := s.heard()
	require.NotContains(t, heard, token)
	require.NotContains(t, strings.ToLower(heard), "authorization")
	for _, line := range strings.Split(heard, "\n") {
		if method, rest, ok := strings.Cut(line, " "); ok && strings.HasSuffix(strings.TrimSpace(rest), "HTTP/1.1") {
			path, _, _ := strings.Cut(rest, " ")
			require.Contains(t, []string{"GET " + wire.RouteIdentity, "POST " + wire.RouteProve}, method+" "+path)
		}
	}
	require.False(t, gone(a.pid, w.seen[a.pid]), "the agent goes on")
	require.Equal(t, recovery.StateRunning, a.view().State, "nothing is repaired on a guess")
	refused(t, a, userapi.CodeRecovering)
	end(t, record, token)
}

// refused checks that a prompt of the session is refused with the code.
func refused(t *testing.T, a *agent, code userapi.Code) {
	t.Helper()
	_, err := a.w.backend.client.Prompt(t.Context(), a.session, "again", "stream 1")
	var refusal *userapi.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, code, refusal.Code)
	require.Equal(t, code == userapi.CodeRecovering, refusal.Retryable)
}

// O-001.10: a process that took the port but not the certificate hears a TLS
// greeting and nothing of HTTP.
func TestAStrangerWithoutTheCertificateHearsOnlyAGreeting(t *testing.T) {
	w := newWorld(t)
	_, record, token := survivor(t, w)
	s := &stranger{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				buffer := make([]byte, 4096)
				n, err := conn.Read(buffer)
				if err != nil && err != io.EOF {
					return
				}
				s.keep(buffer[:n])
				if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"); err != nil {
					return
				}
			})
		}
	})
	defer serving.Wait()
	defer listener.Close()
	w.move(listener.Addr().String(), record.Fingerprint)

	status := w.start().serving().status
	require.Equal(t, recovery.RefusedIdentityMismatch, status.Recovery.Reason)
	heard := s.heard()
	require.NotEmpty(t, heard)
	const handshake = 0x16 // the record type of a TLS ClientHello
	require.Equal(t, byte(handshake), heard[0])
	require.NotContains(t, heard, "HTTP")
	require.NotContains(t, heard, token)
	end(t, record, token)
}

// O-001.8, S-002.7, S-003.1: nothing listens where the record points, and the
// agent's process is gone: a fresh server, and a session that can be resumed.
func TestAVanishedServerLeavesSessionsResumable(t *testing.T) {
	w := newWorld(t)
	a, record, token := survivor(t, w)
	end(t, record, token)
	w.eventually("the agents are gone", func() bool { return gone(a.pid, w.seen[a.pid]) })
	status := w.start().serving().status
	require.Equal(t, recovery.VerdictFresh, status.Recovery.Verdict)
	require.Empty(t, status.Recovery.Reason)
	view := a.view()
	require.Equal(t, recovery.StateInterrupted, view.State)
	require.Equal(t, recovery.TaskInterrupted, view.TaskState)
	require.Equal(t, recovery.TurnAbandoned, view.Turn.State)
	kept, err := w.store().GetSession(t.Context(), status.Installation, a.session)
	require.NoError(t, err)
	require.NotEmpty(t, kept.ProviderSessionID, "the resume token is kept")
}
