package integration

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
)

// deleteSecret takes the credential away, and garbleSecret makes it unreadable.
const (
	deleteSecret = `DELETE FROM secrets WHERE ref = (SELECT secret_ref FROM control_server_records)`
	garbleSecret = `UPDATE secrets SET sealed = 'garbled' WHERE ref = (SELECT secret_ref FROM control_server_records)`
)

// O-001.3, O-001.5, O-001.6, O-001.8, O-001.9: a record that cannot lead to an
// adoption leaves the server that it names untouched, and its secret as it is.
// What comes first in the order of reasons is said, also where a later one
// applies as well.
func TestABadRecordLeavesItsServerAlone(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		bend    []string
		peer    func(*testing.T, *siege) *peer // in place of the real server
		hears   func(*testing.T, *peer)
		verdict recovery.Verdict
		reason  recovery.RefusalReason
		inFull  bool
	}{
		{name: "without an identity", bend: []string{`UPDATE control_server_records SET server_identity = ''`},
			peer: overHTTP(anonymous), hears: hearsNothing,
			verdict: recovery.VerdictRefused, reason: recovery.RefusedIdentityMismatch},
		{name: "another identity and another key to prove", bend: []string{
			`UPDATE control_server_records SET server_identity = 'other', rotation_id = rotation_id + 1`},
			verdict: recovery.VerdictRefused, reason: recovery.RefusedIdentityMismatch},
		{name: "the secret is gone", bend: []string{deleteSecret},
			verdict: recovery.VerdictRefused, reason: recovery.RefusedCredentialUnavailable},
		{name: "the secret cannot be unsealed", bend: []string{garbleSecret},
			peer: overHTTP(identified(yes)), hears: hearsIdentityOnly,
			verdict: recovery.VerdictRefused, reason: recovery.RefusedCredentialUnavailable},
		{name: "the secret is gone and another server answers", bend: []string{deleteSecret},
			peer: overHTTP(handles(other)), hears: hearsIdentityOnly,
			verdict: recovery.VerdictRefused, reason: recovery.RefusedIdentityMismatch},
		{name: "the secret is gone and nobody listens", bend: []string{deleteSecret},
			peer: closed, hears: hearsNothing, inFull: true,
			verdict: recovery.VerdictFresh},
	}
	w := newWorld(t)
	s := besiege(w)
	for _, c := range cases {
		if c.inFull && !long() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			w.within(t)
			defer s.mend()
			var p *peer
			if c.peer != nil {
				p = c.peer(t, s)
				s.name(p)
			}
			for _, sql := range c.bend {
				s.bend(sql)
			}
			secret := s.sealed()
			pass := s.start().serving().status.Recovery
			require.Equal(t, c.verdict, pass.Verdict)
			require.Equal(t, c.reason, pass.Reason)
			s.standsAlone(secret)
			if p != nil {
				c.hears(t, p)
			}
		})
	}
	s.endures()
}

// anonymous is a server that has no identity either.
func anonymous(s *siege) http.HandlerFunc {
	self := s.identity()
	self.ServerIdentity = ""
	return func(rw http.ResponseWriter, _ *http.Request) { answer(rw, self) }
}

// other is a control server that is not the recorded one.
func other(rw http.ResponseWriter, _ *http.Request) {
	answer(rw, map[string]any{"server_identity": "other", "capabilities": []string{}, "unowned_period_ms": 600_000})
}

// closed is an address where nobody listens any more.
func closed(t *testing.T, _ *siege) *peer {
	p := listen(t, "127.0.0.1:0")
	require.NoError(t, p.Close())
	return p
}
