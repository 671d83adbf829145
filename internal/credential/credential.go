// Package credential makes and checks what a backend and its control server
// know of each other: bearer tokens, and the proof by which a server shows that
// it holds a token without either side sending it. It imports the standard
// library only; both sides use it.
package credential

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

const (
	tokenBytes = 32
	proofLabel = "kandev control server proof v1"
)

// NewToken returns a fresh random token of 256 bits, URL-safe.
func NewToken() string { return base64.RawURLEncoding.EncodeToString(random(tokenBytes)) }

// NewID returns a fresh random identifier of 128 bits in hex; it is not secret.
func NewID() string { return hex.EncodeToString(random(16)) }

// NewChallenge returns 32 fresh random bytes. A challenge serves one attempt.
func NewChallenge() []byte { return random(32) }

// random never fails: since Go 1.24 crypto/rand ends the program rather than
// return an error.
func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// Equal compares two tokens in constant time.
func Equal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// Fingerprint names a certificate: the hex SHA-256 of its DER form.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// Statement is what a proof covers. Whatever was read from the server without
// authentication is in it, so that none of it can be altered on the way, and
// so are the endpoint as dialed and the exporter of the very connection, so
// that a relay in front of the real server fails (O-001.10).
type Statement struct {
	Challenge       []byte
	RotationID      uint64
	Home            string
	Endpoint        string
	ServerIdentity  string
	Capabilities    []string
	UnownedPeriodMS int64
	Exporter        []byte // keying material of the TLS connection, both ends' own
}

// Proof returns the HMAC-SHA256 of the statement under a key derived from the
// token. Every field is length-prefixed, so that no two statements share an
// encoding.
func Proof(token string, s Statement) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, []byte(token), nil, proofLabel, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive proof key: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	field := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		mac.Write(n[:])
		mac.Write(b)
	}
	number := func(v uint64) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], v)
		field(n[:])
	}
	field(s.Challenge)
	number(s.RotationID)
	field([]byte(s.Home))
	field([]byte(s.Endpoint))
	field([]byte(s.ServerIdentity))
	number(uint64(len(s.Capabilities)))
	for _, c := range s.Capabilities {
		field([]byte(c))
	}
	number(uint64(s.UnownedPeriodMS))
	field(s.Exporter)
	return mac.Sum(nil), nil
}

// VerifyProof reports, in constant time, whether answer proves the statement
// under the token.
func VerifyProof(token string, s Statement, answer []byte) bool {
	want, err := Proof(token, s)
	return err == nil && hmac.Equal(want, answer)
}
