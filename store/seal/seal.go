// Package seal encrypts secrets with an age X25519 key that lies in a file of
// the home directory, so that what reaches the database is worthless without
// the host.
package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"filippo.io/age"

	"github.com/kandev/recovery/internal/atomicfile"
)

// FileName is the key's file under the home directory. It has mode 0600.
const FileName = "secrets.key"

// Errors of Open.
var (
	// ErrKeyUnreadable: the file is there and holds no usable key. It is never
	// replaced: what it sealed would be lost.
	ErrKeyUnreadable = errors.New("secrets.key holds no usable key; restore it from a backup, or move it away to begin with a new one")
	// ErrKeyExposed: other users of the machine can read the file.
	ErrKeyExposed = errors.New("secrets.key is accessible to other users; run chmod 600 on it")
)

// Key seals and unseals. It is safe for concurrent use.
type Key struct{ identity *age.X25519Identity }

// Open reads <home>/secrets.key, or creates it durably if there is none. Of
// several processes that create it at once, all end up with the same key.
func Open(home string) (*Key, error) {
	path := filepath.Join(home, FileName)
	key, err := read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := create(home, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create %s: %w", FileName, err)
	}
	return read(path)
}

func read(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", FileName, err)
	}
	// Windows has no such mode bits; a home directory is private there.
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, ErrKeyExposed
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", FileName, err)
	}
	identity, err := age.ParseX25519Identity(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, ErrKeyUnreadable
	}
	return &Key{identity: identity}, nil
}

// create writes a new key beside the path and links it there, so that a crash
// never leaves half a key, and a key that is there is never overwritten.
func create(home, path string) error {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(home, FileName+".*")
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, identity.String()+"\n")
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Link(file.Name(), path)
	}
	return errors.Join(err, os.Remove(file.Name()), atomicfile.SyncDirectory(home))
}

// Seal encrypts.
func (k *Key) Seal(plain []byte) ([]byte, error) {
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, k.identity.Recipient())
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return sealed.Bytes(), nil
}

// Unseal decrypts what this key sealed; anything else, or an altered text, is
// an error.
func (k *Key) Unseal(sealed []byte) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), k.identity)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
