// Package controltest runs a real control server inside a test, for tests of what
// a backend does with one. Its agents are the test's: it fills their event logs
// and sees what they are asked to do.
package controltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/ownership"
	"github.com/kandev/recovery/agentctl/server"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/credential"
)

// Server is a running control server.
type Server struct {
	*Agents
	Owner     owner.Server // as the backend that started it knows it
	Authority *ownership.Authority

	done chan struct{}
}

// Start runs a control server until the test ends. period is how long it tolerates
// having no owner; nothing in it ends it for that.
func Start(t testing.TB, period time.Duration) *Server {
	t.Helper()
	const nonce = "nonce"
	s := &Server{
		Agents:    &Agents{agents: make(map[string]*Agent)},
		Authority: ownership.New(ownership.Config{Nonce: nonce, Period: period, Clock: time.Now}),
		done:      make(chan struct{}),
	}
	listener, err := server.Listen(t.Context(), "127.0.0.1", 0)
	require.NoError(t, err)
	identity := credential.NewID()
	srv, err := server.New(server.Config{
		Authority: s.Authority, Instances: s.Agents, Identity: identity, Home: "/home", Logger: zaptest.NewLogger(t, zaptest.Level(zapLevel)),
	}, listener)
	require.NoError(t, err)
	go func() {
		defer close(s.done)
		if err := srv.Run(); err != nil {
			t.Errorf("control server: %v", err)
		}
	}()
	t.Cleanup(s.End)
	s.Owner = owner.Server{
		Identity: identity, Endpoint: srv.Endpoint(), Fingerprint: srv.Fingerprint(), Home: "/home", UnownedPeriod: period,
	}
	issued, err := s.client().Handshake(t.Context(), nonce)
	require.NoError(t, err)
	s.Owner.Credential, s.Owner.RotationID = issued.Credential, issued.RotationID
	return s
}

func (s *Server) client() *client.Client {
	return client.New(client.Config{
		Endpoint: s.Owner.Endpoint, Fingerprint: s.Owner.Fingerprint,
		Credential: s.Owner.Credential, HTTPTimeout: 10 * time.Second,
	})
}

// TakeOver adopts the server as another backend does, and returns it as that one
// knows it. The credential of Owner is worthless from then on.
func (s *Server) TakeOver(t testing.TB) owner.Server {
	t.Helper()
	c := s.client()
	defer c.Close()
	issued, err := c.Rotate(t.Context())
	require.NoError(t, err)
	next := s.Owner
	next.Credential, next.RotationID = issued.Credential, issued.RotationID
	confirming := c.WithCredential(issued.Credential)
	_, err = confirming.Confirm(t.Context(), issued.RotationID)
	require.NoError(t, err)
	return next
}

// End shuts the server down and waits for it.
func (s *Server) End() {
	s.Authority.ShutdownFor(ownership.ReasonSignal)
	<-s.done
}
