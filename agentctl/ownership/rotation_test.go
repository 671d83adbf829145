package ownership

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// O-003.8, O-001.10: the nonce buys one credential, once.
func TestHandshakeOnce(t *testing.T) {
	a, _ := newAuthority()
	for _, wrong := range []string{"", "other"} {
		_, err := a.Handshake(wrong)
		requireCode(t, wire.CodeUnauthenticated, err)
	}
	issued, err := a.Handshake(nonce)
	require.NoError(t, err)
	require.Equal(t, uint64(1), issued.RotationID)
	require.Equal(t, period.Milliseconds(), issued.UnownedPeriodMS)
	require.NoError(t, a.Check(issued.Credential))

	for _, again := range []string{nonce, ""} {
		_, err = a.Handshake(again)
		requireCode(t, wire.CodeUnauthenticated, err)
	}
}

// O-002.10: the superseded credential gets the same rotation again until it is
// confirmed, and never another one.
func TestRotationIsReplayed(t *testing.T) {
	a, first := owned(t)
	issued := rotate(t, a, first)
	require.Equal(t, uint64(2), issued.RotationID)
	require.NotEqual(t, first, issued.Credential)
	require.Equal(t, issued, rotate(t, a, first))
	require.Equal(t, issued, rotate(t, a, first))

	_, err := a.Confirm(issued.Credential, issued.RotationID)
	require.NoError(t, err)
	_, err = a.Rotate(t.Context(), first)
	requireCode(t, wire.CodeSuperseded, err)
}

// O-002.6, O-002.7: what the superseded, unconfirmed credential may and may not
// do.
func TestSupersededCredential(t *testing.T) {
	a, first := owned(t)
	issued := rotate(t, a, first)

	requireCode(t, wire.CodeSuperseded, a.Check(first))
	requireCode(t, wire.CodeSuperseded, a.Claim(first))
	_, err := a.Confirm(first, issued.RotationID)
	requireCode(t, wire.CodeSuperseded, err)
	for _, kind := range []Kind{Request, Stream} {
		_, err = a.Admit(first, kind)
		requireCode(t, wire.CodeSuperseded, err)
	}
	require.NoError(t, a.Shutdown(first))
	require.Equal(t, ReasonRequested, a.Reason())
}

// O-002.1, O-002.3: a credential that was confirmed away is told so, on every
// operation; a stranger is not.
func TestRetiredCredentialIsToldApart(t *testing.T) {
	a, first := owned(t)
	issued := rotate(t, a, first)
	_, err := a.Confirm(issued.Credential, issued.RotationID)
	require.NoError(t, err)

	for token, want := range map[string]wire.Code{
		first:      wire.CodeSuperseded,
		"stranger": wire.CodeUnauthenticated,
		"":         wire.CodeUnauthenticated,
	} {
		requireCode(t, want, a.Check(token))
		requireCode(t, want, a.Claim(token))
		requireCode(t, want, a.Shutdown(token))
		_, err := a.Rotate(t.Context(), token)
		requireCode(t, want, err)
		_, err = a.Confirm(token, issued.RotationID)
		requireCode(t, want, err)
	}
	require.Empty(t, a.Reason())
}

// O-002.6: confirmations of older, repeated and unknown rotations.
func TestConfirm(t *testing.T) {
	a, first := owned(t)
	second := rotate(t, a, first)
	third := rotate(t, a, second.Credential)

	driving, err := a.Confirm(third.Credential, second.RotationID)
	require.NoError(t, err)
	require.Equal(t, third.RotationID, driving)
	require.Equal(t, third, rotate(t, a, second.Credential), "an older confirmation has no effect")

	for range 2 {
		driving, err = a.Confirm(third.Credential, third.RotationID)
		require.NoError(t, err)
		require.Equal(t, third.RotationID, driving)
	}
	for _, unknown := range []uint64{0, third.RotationID + 1} {
		_, err = a.Confirm(third.Credential, unknown)
		requireCode(t, wire.CodeUnknownRotation, err)
	}
}

// O-001.10: the server proves itself for each acceptable credential and for no
// other.
func TestProveForEachAcceptableCredential(t *testing.T) {
	a, first := owned(t)
	second := rotate(t, a, first)
	statement := credential.Statement{Challenge: bytes.Repeat([]byte{7}, 32), Home: "/h", Endpoint: "e"}

	for rotation, token := range map[uint64]string{1: first, 2: second.Credential} {
		statement.RotationID = rotation
		answer, err := a.Prove(statement)
		require.NoError(t, err)
		require.True(t, credential.VerifyProof(token, statement, answer))
		statement.Home = "/other"
		require.False(t, credential.VerifyProof(token, statement, answer))
		statement.Home = "/h"
	}
	_, err := a.Confirm(second.Credential, 2)
	require.NoError(t, err)
	for _, rotation := range []uint64{0, 1, 3} {
		statement.RotationID = rotation
		_, err := a.Prove(statement)
		requireCode(t, wire.CodeUnknownRotation, err)
	}
}

// O-002.6, O-002.8, O-002.10: whatever is presented in whatever order, ids only
// grow, at most two credentials are acceptable, only the newest drives, and
// only the newest obtains a new one.
func TestRotationProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, _ := newAuthority()
		issued, err := a.Handshake(nonce)
		if err != nil {
			t.Fatal(err)
		}
		tokens := []string{issued.Credential}
		newest, superseded := 0, -1
		pick := func(t *rapid.T) int { return rapid.IntRange(0, len(tokens)-1).Draw(t, "token") }
		t.Repeat(map[string]func(*rapid.T){
			"rotate": func(t *rapid.T) {
				i := pick(t)
				issued, err := a.Rotate(context.Background(), tokens[i])
				switch i {
				case newest:
					if err != nil || issued.RotationID != uint64(len(tokens)+1) {
						t.Fatalf("rotation %d: %v", issued.RotationID, err)
					}
					tokens = append(tokens, issued.Credential)
					superseded, newest = newest, newest+1
				case superseded:
					if err != nil || issued.Credential != tokens[newest] {
						t.Fatalf("replay: %v", err)
					}
				default:
					if code(err) != wire.CodeSuperseded {
						t.Fatalf("retired credential rotated: %v", err)
					}
				}
			},
			"confirm": func(t *rapid.T) {
				i := pick(t)
				rotation := rapid.Uint64Range(0, uint64(len(tokens)+1)).Draw(t, "rotation")
				driving, err := a.Confirm(tokens[i], rotation)
				switch {
				case i != newest:
					if code(err) != wire.CodeSuperseded {
						t.Fatalf("confirmed by credential %d: %v", i, err)
					}
				case rotation == 0 || rotation > uint64(len(tokens)):
					if code(err) != wire.CodeUnknownRotation {
						t.Fatalf("unknown rotation: %v", err)
					}
				case err != nil || driving != uint64(newest+1):
					t.Fatalf("confirm: %d, %v", driving, err)
				case rotation == driving:
					superseded = -1
				}
			},
			"": func(t *rapid.T) {
				for i, token := range tokens {
					if driving := a.Check(token) == nil; driving != (i == newest) {
						t.Fatalf("credential %d drives: %v", i, driving)
					}
					_, err := a.issuedBy(uint64(i + 1))
					if acceptable := err == nil; acceptable != (i == newest || i == superseded) {
						t.Fatalf("credential %d acceptable: %v", i, acceptable)
					}
				}
			},
		})
	})
}

// The memory of retired credentials is bounded.
func TestRetiredCredentialsAreForgottenInTheEnd(t *testing.T) {
	a, first := owned(t)
	token := first
	for range retiredKept + 2 {
		token = rotate(t, a, token).Credential
	}
	require.Len(t, a.retired.known, retiredKept)
	require.Len(t, a.retired.order, retiredKept)
	requireCode(t, wire.CodeUnauthenticated, a.Check(first))
}
