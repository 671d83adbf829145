//go:build unix

package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/migrations"
	"github.com/kandev/recovery/store/storetest"
)

// O-001.9, O-004.7: the credential of a server that the record does not name any
// more is kept, with the process to whom it belongs, until it is dropped; the
// one that the record names cannot be dropped, and other installations and other
// kinds of secrets are not looked at.
func TestRetainedCredentials(t *testing.T) {
	b := setup(t)
	other := b.installation("another")
	require.NoError(t, other.PutControlServer(b.ctx, other.inst, server, "theirs"))
	retained := func() []store.RetainedCredential {
		t.Helper()
		list, err := b.RetainedCredentials(b.ctx, b.inst)
		require.NoError(t, err)
		return list
	}
	require.Empty(t, retained())
	require.NoError(t, b.PutControlServer(b.ctx, b.inst, server, "first"))
	_, err := b.direct().Exec(b.ctx, `INSERT INTO secrets (installation_id, ref, sealed) VALUES ($1, 'lease', '')`, b.inst)
	require.NoError(t, err)
	require.Empty(t, retained())

	first, err := b.GetControlServer(b.ctx, b.inst)
	require.NoError(t, err)
	next := server
	next.ServerIdentity, next.PID, next.ProcessStart = "two", 8, "b:2"
	require.NoError(t, b.PutControlServer(b.ctx, b.inst, next, "second"))
	want := store.RetainedCredential{SecretRef: first.SecretRef, ServerIdentity: "one", PID: 7, ProcessStart: "b:1"}
	require.Equal(t, []store.RetainedCredential{want}, retained())

	current, err := b.GetControlServer(b.ctx, b.inst)
	require.NoError(t, err)
	for _, ref := range []string{first.SecretRef, first.SecretRef, current.SecretRef, "never there"} {
		require.NoError(t, b.DropRetainedCredential(b.ctx, b.inst, ref))
	}
	require.Empty(t, retained())
	_, err = b.Credential(b.ctx, b.inst, first.SecretRef)
	require.ErrorIs(t, err, store.ErrSecretMissing)
	token, err := b.Credential(b.ctx, b.inst, current.SecretRef)
	require.NoError(t, err)
	require.Equal(t, "second", token)
}

// migrateDownTo takes the schema back to an earlier version.
func (b bundle) migrateDownTo(version int64) {
	b.t.Helper()
	db := stdlib.OpenDB(*b.direct().Config())
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files,
		goose.WithTableName("schema_versions"), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	require.NoError(b.t, err)
	_, err = provider.DownTo(b.ctx, version)
	require.NoError(b.t, err)
}

// The holders of credentials that were stored before holders were noted are
// those of the records.
func TestHoldersAreNotedForOldCredentials(t *testing.T) {
	b := setupAt(t, storetest.FreshDSN(t))
	require.NoError(t, b.PutControlServer(b.ctx, b.inst, server, "first"))
	b.migrateDownTo(1)
	require.NoError(t, b.Migrate(b.ctx))
	next := server
	next.ServerIdentity = "two"
	require.NoError(t, b.PutControlServer(b.ctx, b.inst, next, "second"))
	retained, err := b.RetainedCredentials(b.ctx, b.inst)
	require.NoError(t, err)
	require.Len(t, retained, 1)
	require.Equal(t, server.ProcessStart, retained[0].ProcessStart)
}
