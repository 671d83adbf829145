package seal_test

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/store/seal"
)

// O-001.1: what is sealed can be read with the home's key only, and is not in
// clear; the key's file is private and stays.
func TestSealAndUnseal(t *testing.T) {
	home := t.TempDir()
	key, err := seal.Open(home)
	require.NoError(t, err)
	sealed, err := key.Seal([]byte("credential"))
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "credential")

	again, err := seal.Open(home)
	require.NoError(t, err)
	plain, err := again.Unseal(sealed)
	require.NoError(t, err)
	require.Equal(t, "credential", string(plain))

	other, err := seal.Open(t.TempDir())
	require.NoError(t, err)
	_, err = other.Unseal(sealed)
	require.Error(t, err)
	sealed[len(sealed)-1] ^= 1
	_, err = key.Unseal(sealed)
	require.Error(t, err, "an altered text")

	info, err := os.Stat(filepath.Join(home, seal.FileName))
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.EqualValues(t, 0o600, info.Mode().Perm())
	}
	entries, err := os.ReadDir(home)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file stays")
}

// Of concurrent first opens all get the key that stays.
func TestConcurrentFirstOpen(t *testing.T) {
	home := t.TempDir()
	keys := make([]*seal.Key, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			key, err := seal.Open(home)
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = key
		})
	}
	all.Wait()
	sealed, err := keys[0].Seal([]byte("x"))
	require.NoError(t, err)
	for _, key := range keys {
		_, err := key.Unseal(sealed)
		require.NoError(t, err)
	}
}

// O-001.9: a key that cannot be used is never replaced by a new one.
func TestUnusableKeyStays(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, seal.FileName)
	require.NoError(t, os.WriteFile(path, []byte("garbage"), 0o600))
	_, err := seal.Open(home)
	require.ErrorIs(t, err, seal.ErrKeyUnreadable)
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Chmod(path, 0o644))
		_, err = seal.Open(home)
		require.ErrorIs(t, err, seal.ErrKeyExposed)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "garbage", string(text))
	_, err = seal.Open(filepath.Join(home, "missing"))
	require.Error(t, err)
}
