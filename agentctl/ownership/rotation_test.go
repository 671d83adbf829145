package ownership

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

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
