package credential

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func statement() Statement {
	return Statement{
		Challenge: NewChallenge(), RotationID: 7, Home: "/home/a", Endpoint: "127.0.0.1:1",
		ServerIdentity: "s", Capabilities: []string{"a", "b"}, UnownedPeriodMS: 600_000,
		Exporter: []byte("exporter"),
	}
}

// O-001.10: the answer needs the credential and covers every field; changing
// any one of them makes it worthless.
func TestProofCoversEveryField(t *testing.T) {
	token, base := NewToken(), statement()
	answer, err := Proof(token, base)
	require.NoError(t, err)
	require.True(t, VerifyProof(token, base, answer))
	require.False(t, VerifyProof(NewToken(), base, answer), "another credential")

	changes := map[string]func(*Statement){
		"challenge":      func(s *Statement) { s.Challenge = NewChallenge() },
		"rotation id":    func(s *Statement) { s.RotationID++ },
		"home":           func(s *Statement) { s.Home = "/home/b" },
		"endpoint":       func(s *Statement) { s.Endpoint = "127.0.0.1:2" },
		"identity":       func(s *Statement) { s.ServerIdentity = "t" },
		"capability":     func(s *Statement) { s.Capabilities = []string{"a"} },
		"boundaries":     func(s *Statement) { s.Capabilities = []string{"ab"} },
		"unowned period": func(s *Statement) { s.UnownedPeriodMS-- },
		"connection":     func(s *Statement) { s.Exporter = []byte("another connection") },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			changed := base
			change(&changed)
			require.False(t, VerifyProof(token, changed, answer))
		})
	}
}

// Length prefixes keep neighbouring fields from borrowing bytes of each other.
func TestProofFieldsDoNotRunTogether(t *testing.T) {
	token := NewToken()
	a, b := statement(), statement()
	b.Challenge = a.Challenge
	a.Home, a.Endpoint = "xy", "z"
	b.Home, b.Endpoint = "x", "yz"
	answer, err := Proof(token, a)
	require.NoError(t, err)
	require.False(t, VerifyProof(token, b, answer))
}

func TestTokensAreFresh(t *testing.T) {
	require.NotEqual(t, NewToken(), NewToken())
	require.NotEqual(t, NewID(), NewID())
	require.True(t, Equal("a", "a"))
	require.False(t, Equal("a", "b"))
}
