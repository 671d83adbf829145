package keepalive_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/controltest"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/credential"
	"github.com/kandev/recovery/internal/sealedcopy"
)

// stranger answers everything with success, under a certificate of its own, and
// keeps what it was asked.
type stranger struct {
	mu     sync.Mutex
	asked  []string
	secret bool // it was sent a credential
}

func (s *stranger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	s.secret = s.secret || r.Header.Get(wire.HeaderCredential) != ""
	s.mu.Unlock()
	answer := map[string]any{
		"server_identity": "one", "capabilities": wire.Capabilities(), "unowned_period_ms": 1,
		"answer": "bm90IGEgcHJvb2Y=", "credential": "stolen", "rotation_id": 9,
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (s *stranger) heard() ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.secret
}

// B-2, O-001.4, O-001.10: a server that does not prove itself gets an identity
// request and a challenge, once, and never a credential.
func TestAStrangerGetsNothing(t *testing.T) {
	t.Parallel()
	ours := controltest.Start(t, period)
	s := &stranger{}
	server := httptest.NewUnstartedServer(s)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	server.StartTLS()
	defer server.Close()
	k := keep(t, owner.Server{
		Identity: "one", Endpoint: server.Listener.Addr().String(),
		Fingerprint: credential.Fingerprint(server.Certificate().Raw), Home: "/home",
		Credential: "secret", RotationID: 1, UnownedPeriod: period,
	})
	k.givenUp()
	asked, _ := s.heard()
	for _, what := range asked {
		require.Contains(t, []string{"GET " + wire.RouteIdentity, "POST " + wire.RouteProve}, what)
	}
	// Several rounds later: the same copy, then a server of ours for as long.
	named, err := k.copy.Read()
	require.NoError(t, err)
	rounds := make(chan struct{}, 100)
	k.Prefer(func(context.Context) (sealedcopy.Server, error) { rounds <- struct{}{}; return named, nil })
	for range 3 {
		<-rounds
	}
	k.Prefer(func(context.Context) (sealedcopy.Server, error) { return copyOf(ours.Owner), nil })
	k.renewedFor(period)
	after, secret := s.heard()
	require.Equal(t, asked, after)
	require.False(t, secret)
}

// B-2, O-002.3: a server that another backend has taken over is left to it.
func TestATakenOverServerIsLeftAlone(t *testing.T) {
	t.Parallel()
	server := controltest.Start(t, period)
	k := keep(t, server.Owner)
	k.renewedFor(period)
	server.TakeOver(t)
	k.givenUp()
	require.Eventually(t, func() bool { return server.Authority.SinceRenewal() > period }, waitFor, tick)
}
