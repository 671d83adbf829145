package sealedcopy_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/sealedcopy"
	"github.com/kandev/recovery/store/seal"
)

var server = sealedcopy.Server{
	Identity: "one", Endpoint: "127.0.0.1:39429", Fingerprint: "f", RotationID: 7,
	Credential: "the-secret-token", UnownedPeriod: time.Minute,
}

func key(t *testing.T) *seal.Key {
	t.Helper()
	k, err := seal.Open(t.TempDir())
	require.NoError(t, err)
	return k
}

// B-2, B-15, O-001.1: the copy lies in the home directory itself, is its owner's
// alone, and holds nothing in clear.
func TestTheCopyIsSealed(t *testing.T) {
	home := t.TempDir()
	f := sealedcopy.In(home, key(t))
	_, err := f.Read()
	require.ErrorIs(t, err, sealedcopy.ErrAbsent)
	require.NoError(t, f.Write(server))
	got, err := f.Read()
	require.NoError(t, err)
	require.Equal(t, server, got)

	path := filepath.Join(home, sealedcopy.FileName)
	sealed, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(sealed), "age-encryption.org/"))
	for _, clear := range []string{server.Credential, server.Endpoint} {
		require.NotContains(t, string(sealed), clear)
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	require.NoError(t, f.Remove())
	_, err = f.Read()
	require.ErrorIs(t, err, sealedcopy.ErrAbsent)
}

// B-2: a copy that cannot be unsealed is not an absent one, and says no path.
func TestAnUnreadableCopyIsNotAbsent(t *testing.T) {
	home := t.TempDir()
	f := sealedcopy.In(home, key(t))
	require.NoError(t, f.Write(server))
	_, err := sealedcopy.In(home, key(t)).Read()
	require.ErrorIs(t, err, sealedcopy.ErrUnreadable)
	require.NotErrorIs(t, err, sealedcopy.ErrAbsent)

	path := filepath.Join(home, sealedcopy.FileName)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err = f.Read()
	require.ErrorIs(t, err, sealedcopy.ErrUnreadable)
	require.NotContains(t, err.Error(), home)
	err = f.Write(server)
	require.Error(t, err)
	require.NotContains(t, err.Error(), home)
}

// B-2: what a server that was not recorded in the end had replaced comes back.
func TestReplaceCanBeTakenBack(t *testing.T) {
	f := sealedcopy.In(t.TempDir(), key(t))
	restore, err := f.Replace(server)
	require.NoError(t, err)
	require.NoError(t, restore())
	_, err = f.Read()
	require.ErrorIs(t, err, sealedcopy.ErrAbsent)

	require.NoError(t, f.Write(server))
	other := server
	other.Identity = "two"
	restore, err = f.Replace(other)
	require.NoError(t, err)
	got, err := f.Read()
	require.NoError(t, err)
	require.Equal(t, other, got)
	require.NoError(t, restore())
	got, err = f.Read()
	require.NoError(t, err)
	require.Equal(t, server, got)
}
