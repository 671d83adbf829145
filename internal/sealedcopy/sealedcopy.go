// Package sealedcopy keeps, beside Postgres, what a backend has to know to keep
// its control server alive while Postgres is away (B-2): a copy of the record
// and the credential, sealed with the key of the secrets. It serves proofs and
// claims, never an adoption.
package sealedcopy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kandev/recovery/internal/atomicfile"
)

// FileName is the copy's file under the home directory (B-15). It has mode 0600.
const FileName = "control-server"

// Errors of Read.
var (
	// ErrAbsent: there is no copy; no control server was recorded here yet.
	ErrAbsent = errors.New("there is no sealed copy of the control-server record")
	// ErrUnreadable: there is one, and it cannot be read or unsealed.
	ErrUnreadable = errors.New("the sealed copy of the control-server record cannot be read")
)

// Sealer encrypts what is written; package seal has one.
type Sealer interface {
	Seal(plain []byte) ([]byte, error)
	Unseal(sealed []byte) ([]byte, error)
}

// Server is a control server as far as a proof and a claim need it.
type Server struct {
	Identity      string        `json:"server_identity"`
	Endpoint      string        `json:"endpoint"`    // host:port
	Fingerprint   string        `json:"fingerprint"` // of its TLS certificate
	RotationID    uint64        `json:"rotation_id"` // of Credential
	Credential    string        `json:"credential"`
	UnownedPeriod time.Duration `json:"unowned_period,omitempty"` // as the server reported it; zero if not known
}

// File is the copy of one home directory. Only the holder of the home's lock
// writes it.
type File struct {
	path   string
	sealer Sealer
}

// In returns the copy of the home directory, which may not be there yet.
func In(home string, sealer Sealer) *File {
	return &File{path: filepath.Join(home, FileName), sealer: sealer}
}

// Read returns what was written last: ErrAbsent if nothing was, ErrUnreadable if
// it cannot be told.
func (f *File) Read() (Server, error) {
	sealed, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Server{}, ErrAbsent
	}
	if err != nil {
		return Server{}, fmt.Errorf("%w: %w", ErrUnreadable, withoutPath(err))
	}
	plain, err := f.sealer.Unseal(sealed)
	if err != nil {
		return Server{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	var s Server
	if err := json.Unmarshal(plain, &s); err != nil {
		return Server{}, fmt.Errorf("%w: not a record", ErrUnreadable)
	}
	return s, nil
}

// Write replaces the copy durably. It comes before the transaction that records
// the same in Postgres, so that the copy is never the older of the two: a
// credential that Postgres holds and the copy does not could no more be claimed
// with once the rotation is confirmed.
func (f *File) Write(s Server) error {
	plain, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the sealed copy: %w", err)
	}
	sealed, err := f.sealer.Seal(plain)
	if err != nil {
		return fmt.Errorf("seal the copy: %w", err)
	}
	return f.put(sealed)
}

// Replace is Write for another server than the one before. The returned function
// puts the earlier content back; it is for a server that was not recorded in the
// end, while Postgres still names the earlier one.
func (f *File) Replace(s Server) (restore func() error, err error) {
	earlier, err := os.ReadFile(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		restore = f.Remove
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, withoutPath(err))
	default:
		restore = func() error { return f.put(earlier) }
	}
	return restore, f.Write(s)
}

// Remove deletes the copy: the server that it names has ended. An absent copy is
// success.
func (f *File) Remove() error {
	if err := atomicfile.Remove(f.path); err != nil {
		return fmt.Errorf("remove the sealed copy: %w", withoutPath(err))
	}
	return nil
}

func (f *File) put(sealed []byte) error {
	if err := atomicfile.Write(f.path, sealed); err != nil {
		return fmt.Errorf("write the sealed copy: %w", withoutPath(err))
	}
	return nil
}

// withoutPath keeps the reason and drops where it happened: a path of the host
// does not belong into a log.
func withoutPath(err error) error {
	var located *fs.PathError
	var linked *os.LinkError
	switch {
	case errors.As(err, &located):
		return located.Err
	case errors.As(err, &linked):
		return linked.Err
	default:
		return err
	}
}
