package client_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// prover holds the credential and proves it as a control server does, except
// for what a test bends.
type prover struct {
	bend     func(*credential.Statement)
	said     wire.Identity // what it says without authentication
	recorded string        // answer to the first challenge
	replay   bool
	hangUp   bool // after the identity
	proofs   int
}

func (p *prover) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(wire.HeaderCredential) != "" {
		panic("a credential before the proof")
	}
	if r.URL.Path == wire.RouteIdentity {
		if p.hangUp {
			w.Header().Set("Connection", "close")
		}
		writeJSON(w, p.said)
		return
	}
	p.proofs++
	var request wire.ProveRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		panic(err)
	}
	challenge, err := base64.StdEncoding.DecodeString(request.Challenge)
	if err != nil {
		panic(err)
	}
	exporter, err := r.TLS.ExportKeyingMaterial(wire.TLSExporterLabel, nil, wire.TLSExporterBytes)
	if err != nil {
		panic(err)
	}
	statement := credential.Statement{
		Challenge: challenge, RotationID: request.RotationID, Home: home, Endpoint: request.Endpoint,
		ServerIdentity: identity, Capabilities: []string{"a"}, UnownedPeriodMS: 1, Exporter: exporter,
	}
	if p.bend != nil {
		p.bend(&statement)
	}
	answer, err := credential.Proof(secret, statement)
	if err != nil {
		panic(err)
	}
	encoded := base64.StdEncoding.EncodeToString(answer)
	if p.recorded == "" {
		p.recorded = encoded
	}
	if p.replay {
		encoded = p.recorded
	}
	writeJSON(w, wire.ProveResponse{Answer: encoded})
}

func writeJSON(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

func newProver() *prover {
	return &prover{said: wire.Identity{ServerIdentity: identity, Capabilities: []string{"a"}, UnownedPeriodMS: 1}}
}

func fingerprint(s *httptest.Server) string { return credential.Fingerprint(s.Certificate().Raw) }

func verify(t *testing.T, p *prover) error {
	t.Helper()
	_, c := answering(t, p.ServeHTTP)
	_, err := c.VerifyServer(t.Context(), home, identity, secret, 3)
	return err
}

// O-001.10: a proof of exactly what is so passes; one that is bent in any
// field, recorded, or made on another connection, fails.
func TestVerifyServer(t *testing.T) {
	require.NoError(t, verify(t, newProver()))
	for name, bend := range map[string]func(*credential.Statement){
		"another challenge":  func(s *credential.Statement) { s.Challenge = make([]byte, 32) },
		"another rotation":   func(s *credential.Statement) { s.RotationID++ },
		"another home":       func(s *credential.Statement) { s.Home = "/x" },
		"another endpoint":   func(s *credential.Statement) { s.Endpoint = "127.0.0.1:1" },
		"another identity":   func(s *credential.Statement) { s.ServerIdentity = "x" },
		"another period":     func(s *credential.Statement) { s.UnownedPeriodMS++ },
		"another connection": func(s *credential.Statement) { s.Exporter = make([]byte, 32) },
		"other capabilities": func(s *credential.Statement) { s.Capabilities = []string{"a", "b"} },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProver()
			p.bend = bend
			require.ErrorIs(t, verify(t, p), client.ErrProof)
		})
	}
	t.Run("capabilities altered on the way", func(t *testing.T) {
		p := newProver()
		p.said.Capabilities = []string{"a", "b"}
		require.ErrorIs(t, verify(t, p), client.ErrProof)
	})
	t.Run("replayed", func(t *testing.T) {
		p := newProver()
		require.NoError(t, verify(t, p))
		p.replay = true
		require.ErrorIs(t, verify(t, p), client.ErrProof)
	})
}

// O-001.3: the identity comes first, and decides before any proof is asked for.
func TestIdentityComesBeforeTheProof(t *testing.T) {
	p := newProver()
	p.said.ServerIdentity = "another"
	require.ErrorIs(t, verify(t, p), client.ErrIdentity)
	require.Zero(t, p.proofs)
}

// O-001.10: identity and proof are on one connection, or not at all.
func TestProofOnOneConnection(t *testing.T) {
	p := newProver()
	p.hangUp = true
	require.ErrorIs(t, verify(t, p), client.ErrNoAnswer)
	require.Zero(t, p.proofs)
}

// O-001.8: a server that is shutting down is told apart from one that fails the
// proof; any other refusal is a failed proof.
func TestRefusedProof(t *testing.T) {
	for code, want := range map[wire.Code]error{
		wire.CodeShuttingDown:    &wire.Error{Code: wire.CodeShuttingDown},
		wire.CodeUnknownRotation: client.ErrProof,
		wire.CodeInternal:        client.ErrProof,
	} {
		p := newProver()
		_, c := answering(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wire.RouteIdentity {
				p.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(code.Status())
			writeJSON(w, wire.ErrorBody{Error: &wire.Error{Code: code}})
		})
		_, err := c.VerifyServer(t.Context(), home, identity, secret, 3)
		require.ErrorIs(t, err, want)
	}
}
