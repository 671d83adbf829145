package workspace

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kandev/recovery/agentctl/wire"
)

// tempPrefix begins the names of files that are not yet in place. They stay
// only if the control server is killed in a write.
const tempPrefix = ".kandev-write-"

// maxExpected bounds, in bytes, the file whose content is compared with what a
// writer expects.
const maxExpected = 64 << 20

// Write puts a file in place whole: whoever opens it sees the old content or
// the new. An existing file keeps its permission bits, but not its hard links.
// The expectation is judged right before the replacement; a change by another
// writer between the two is not noticed. A link is not written through.
func (w *Workspace) Write(request wire.WriteFile) (wire.WrittenFile, error) {
	if err := checkWrite(request); err != nil {
		return wire.WrittenFile{}, err
	}
	dir, name, err := w.open(request.Place)
	if err != nil {
		return wire.WrittenFile{}, err
	}
	defer dir.Close()
	// From here on the directory is a descriptor: its name may change hands.
	parent, err := openDirectory(dir, filepath.Dir(name))
	if err != nil {
		return wire.WrittenFile{}, err
	}
	defer parent.Close()
	created, err := replace(parent, filepath.Base(name), request)
	if err != nil {
		return wire.WrittenFile{}, refusal(parent, err)
	}
	return wire.WrittenFile{SHA256: digest(request.Content), Created: created}, nil
}

func checkWrite(request wire.WriteFile) error {
	if len(request.Content) > wire.MaxFileContent {
		return refuse(wire.CodeTooLarge, fmt.Sprintf("the content is over %d bytes", wire.MaxFileContent))
	}
	if request.Expect == "" || request.Expect == wire.ExpectAbsent {
		return nil
	}
	if sum, err := hex.DecodeString(request.Expect); err != nil || len(sum) != sha256.Size {
		return refuse(wire.CodeBadRequest, `expect is neither "absent" nor a SHA-256 in hex`)
	}
	return nil
}

// replace writes a file beside the one of that name, and then takes its place.
func replace(dir *os.Root, name string, request wire.WriteFile) (created bool, err error) {
	before, err := existing(dir, name)
	if err != nil {
		return false, err
	}
	temp := tempPrefix + rand.Text()
	if err := fill(dir, temp, before, request.Content); err != nil {
		return false, err
	}
	if err = meets(dir, name, request.Expect); err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		return false, errors.Join(err, dir.Remove(temp))
	}
	return before == nil, nil
}

// existing describes the file that a write replaces; nil if there is none. It
// must be one that could be written in place.
func existing(dir *os.Root, name string) (fs.FileInfo, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, err
	}
	file, info, err := openRegular(dir, name, os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	return info, file.Close()
}

// fill writes a new file of that name, durably, or leaves none. It gets the
// permission bits of before, or the usual ones.
func fill(dir *os.Root, name string, before fs.FileInfo, content []byte) error {
	perm := fs.FileMode(0o666)
	if before != nil {
		perm = 0o600
	}
	file, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil && before != nil {
		err = file.Chmod(before.Mode().Perm())
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, dir.Remove(name))
	}
	return nil
}

// meets refuses with CodeFileChanged unless the file is what the writer
// expects.
func meets(dir *os.Root, name, expect string) error {
	if expect == "" {
		return nil
	}
	if expect == wire.ExpectAbsent {
		_, err := dir.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		return refuse(wire.CodeFileChanged, "the file exists")
	}
	found, err := sum(dir, name)
	if errors.Is(err, &wire.Error{Code: wire.CodeNoSuchFile}) {
		return refuse(wire.CodeFileChanged, "the file does not exist any more")
	}
	if err != nil {
		return err
	}
	if !strings.EqualFold(found, expect) {
		return refuse(wire.CodeFileChanged, "the file has another content than expected")
	}
	return nil
}

// sum is the SHA-256 of a file, in hex. One that is too large to tell is
// refused.
func sum(dir *os.Root, name string) (string, error) {
	file, _, err := openRegular(dir, name, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(file, maxExpected+1))
	if err != nil {
		return "", err
	}
	if n > maxExpected {
		return "", refuse(wire.CodeTooLarge, fmt.Sprintf("the file is over %d bytes and cannot be compared", maxExpected))
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
