//go:build unix

package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

var server = store.ControlServer{
	ServerIdentity: "one", Endpoint: "127.0.0.1:39429", Fingerprint: "f", RotationID: 1, Capabilities: []string{"a", "b"},
	LogPath: "/home/log", PID: 7, ProcessStart: "b:1", BootID: boot,
}

// O-001.1, O-002.7, O-004.5: record, observed capabilities and secret are written
// together; the credential is never in the database in clear.
func TestControlServerRoundTrip(t *testing.T) {
	b := setup(t)
	_, err := b.GetControlServer(b.ctx, b.inst)
	require.ErrorIs(t, err, store.ErrNoRecord)
	require.ErrorIs(t, b.PutControlServer(b.ctx, "unknown", server, "token"), store.ErrNoInstallation)

	require.NoError(t, b.PutControlServer(b.ctx, b.inst, server, "the-secret-token"))
	got, err := b.GetControlServer(b.ctx, b.inst)
	require.NoError(t, err)
	require.NotEmpty(t, got.SecretRef)
	want := server
	want.SecretRef = got.SecretRef
	require.Equal(t, want, got)
	token, err := b.Credential(b.ctx, b.inst, got.SecretRef)
	require.NoError(t, err)
	require.Equal(t, "the-secret-token", token)

	var dump string
	err = b.direct().QueryRow(b.ctx, `SELECT string_agg(encode(sealed, 'escape'), '') || (SELECT string_agg(c::text, '') FROM control_server_records c) FROM secrets`).Scan(&dump)
	require.NoError(t, err)
	require.NotContains(t, dump, "the-secret-token")
	require.True(t, strings.HasPrefix(dump, "age-encryption.org/"))
}

// O-002.6, O-002.10: a rotation replaces the secret in place; ids only grow for
// one server; a replay is written again.
func TestRotationIdsOnlyGrow(t *testing.T) {
	b := setup(t)
	put := func(rotation uint64, token string) error {
		c := server
		c.RotationID = rotation
		return b.PutControlServer(b.ctx, b.inst, c, token)
	}
	require.NoError(t, put(1, "first"))
	first, err := b.GetControlServer(b.ctx, b.inst)
	require.NoError(t, err)
	require.NoError(t, put(3, "third"))
	require.NoError(t, put(3, "third"))
	require.ErrorIs(t, put(2, "second"), store.ErrRotationStale)
	got, err := b.GetControlServer(b.ctx, b.inst)
	require.NoError(t, err)
	require.Equal(t, first.SecretRef, got.SecretRef)
	require.EqualValues(t, 3, got.RotationID)
	token, err := b.Credential(b.ctx, b.inst, got.SecretRef)
	require.NoError(t, err)
	require.Equal(t, "third", token)
}

// O-001.9: another server gets a secret of its own, begins its own rotations,
// and the earlier secret is neither deleted nor overwritten.
func TestAnotherServerKeepsTheOldSecret(t *testing.T) {
	b := setup(t)
	c := server
	c.RotationID = 9
	require.NoError(t, b.PutControlServer(b.ctx, b.inst, c, "old"))
	old, err := b.GetControlServer(b.ctx, b.inst)
	require.NoError(t, err)
	c.ServerIdentity, c.RotationID = "two", 1
	require.NoError(t, b.PutControlServer(b.ctx, b.inst, c, "new"))
	got, err := b.GetControlServer(b.ctx, b.inst)
	require.NoError(t, err)
	require.Equal(t, "two", got.ServerIdentity)
	require.NotEqual(t, old.SecretRef, got.SecretRef)
	token, err := b.Credential(b.ctx, b.inst, old.SecretRef)
	require.NoError(t, err)
	require.Equal(t, "old", token)
}

// O-001.9: "missing" and "cannot be unsealed" are answers of their own, and no
// answer is neither.
func TestCredentialIsThreeValued(t *testing.T) {
	b := setup(t)
	c := server
	c.SecretRef = "ref"
	require.NoError(t, b.PutControlServer(b.ctx, b.inst, c, "token"))
	_, err := b.Credential(b.ctx, b.inst, "other")
	require.ErrorIs(t, err, store.ErrSecretMissing)
	otherKey := storetest.At(t, b.dsn)
	_, err = otherKey.Credential(b.ctx, b.inst, "ref")
	require.ErrorIs(t, err, store.ErrSecretSealed)

	absent := storetest.At(t, "postgres://kandev@/kandev?host="+filepath.Join(t.TempDir(), "nowhere"))
	_, err = absent.Credential(b.ctx, b.inst, "ref")
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NotErrorIs(t, err, store.ErrSecretMissing)
	require.NotErrorIs(t, err, store.ErrSecretSealed)
	require.NotContains(t, err.Error(), os.TempDir(), "no path of the host in an error's text")
}
