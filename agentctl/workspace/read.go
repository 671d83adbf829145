package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kandev/recovery/agentctl/wire"
)

// Read returns up to limit bytes of a regular file from the offset on; limit 0
// means wire.MaxFileContent, which is the most. Links inside the root are
// followed.
func (w *Workspace) Read(place wire.Place, offset, limit int64) (wire.FileContent, error) {
	if limit == 0 {
		limit = wire.MaxFileContent
	}
	if offset < 0 || limit < 0 || limit > wire.MaxFileContent {
		return wire.FileContent{}, refuse(wire.CodeBadRequest,
			fmt.Sprintf("offset is negative, or limit is outside 0 to %d", wire.MaxFileContent))
	}
	dir, name, err := w.open(place)
	if err != nil {
		return wire.FileContent{}, err
	}
	defer dir.Close()
	file, info, err := openRegular(dir, name, os.O_RDONLY)
	if err != nil {
		return wire.FileContent{}, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.NewSectionReader(file, offset, limit))
	if err != nil {
		return wire.FileContent{}, refusal(dir, err)
	}
	return piece(content, offset, limit, info.Size()), nil
}

// piece describes what was read. A file that was read to its end is as large as
// what was read of it, whatever it was before.
func piece(content []byte, offset, limit, size int64) wire.FileContent {
	read := int64(len(content))
	if offset == 0 && (read < limit || read == size) {
		return wire.FileContent{Content: content, Size: read, SHA256: digest(content)}
	}
	return wire.FileContent{Content: content, Offset: offset, Size: max(size, offset+read)}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// List returns the entries of a directory, sorted by name. Links are not
// followed to describe them, but the directory itself may be named by one.
func (w *Workspace) List(place wire.Place) (wire.Directory, error) {
	dir, name, err := w.open(place)
	if err != nil {
		return wire.Directory{}, err
	}
	defer dir.Close()
	listed, err := openDirectory(dir, name)
	if err != nil {
		return wire.Directory{}, err
	}
	defer listed.Close()
	names, truncated, err := names(listed, wire.MaxDirectoryEntries)
	if err != nil {
		return wire.Directory{}, refusal(dir, err)
	}
	entries := make([]wire.DirectoryEntry, 0, len(names))
	for _, name := range names {
		info, err := listed.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return wire.Directory{}, refusal(dir, err)
		}
		entries = append(entries, entry(name, info))
	}
	return wire.Directory{Entries: entries, Truncated: truncated}, nil
}

// names are the names in a directory, sorted, or limit of them.
func names(dir *os.Root, limit int) (names []string, truncated bool, err error) {
	file, err := dir.Open(".")
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	names, err = file.Readdirnames(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if truncated = len(names) > limit; truncated {
		names = names[:limit]
	}
	slices.SortFunc(names, strings.Compare)
	return names, truncated, nil
}

func entry(name string, info fs.FileInfo) wire.DirectoryEntry {
	e := wire.DirectoryEntry{Name: name, Kind: kindOf(info), ModifiedAt: writable(info.ModTime())}
	if e.Kind == wire.KindFile {
		e.Size = info.Size()
	}
	return e
}

// writable is a time that JSON can hold; the zero time stands for any other.
func writable(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
