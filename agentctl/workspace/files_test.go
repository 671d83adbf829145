package workspace_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

func sha(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// Any bytes pass, whole and in pieces.
func TestReadingInPieces(t *testing.T) {
	g := newGround(t)
	var all strings.Builder
	for b := range 256 {
		all.WriteByte(byte(b))
	}
	put(t, g.at("binary"), all.String())
	content, err := g.Read(in("./binary"), 0, 0)
	require.NoError(t, err)
	require.Equal(t, wire.FileContent{Content: []byte(all.String()), Size: 256, SHA256: sha(all.String())}, content)

	var pieces []byte
	for int64(len(pieces)) < content.Size {
		piece, err := g.Read(in("binary"), int64(len(pieces)), 100)
		require.NoError(t, err)
		require.Equal(t, int64(256), piece.Size)
		require.Equal(t, int64(len(pieces)), piece.Offset)
		require.Empty(t, piece.SHA256, "this is not the whole file")
		pieces = append(pieces, piece.Content...)
	}
	require.Equal(t, all.String(), string(pieces))

	put(t, g.at("empty"), "")
	content, err = g.Read(in("empty"), 0, 1)
	require.NoError(t, err)
	require.Equal(t, wire.FileContent{Content: []byte{}, SHA256: sha("")}, content)
	for _, bad := range [][2]int64{{-1, 0}, {0, -1}, {0, wire.MaxFileContent + 1}} {
		_, err = g.Read(in("binary"), bad[0], bad[1])
		requireCode(t, wire.CodeBadRequest, err)
	}
	_, err = g.Read(in("absent"), 0, 0)
	requireCode(t, wire.CodeNoSuchFile, err)
	_, err = g.Read(in(""), 0, 0)
	requireCode(t, wire.CodeWrongKind, err)
	_, err = g.Read(in("binary/below"), 0, 0)
	requireCode(t, wire.CodeWrongKind, err)
	_, err = g.Read(in(strings.Repeat("x", 300)), 0, 0)
	requireCode(t, wire.CodeBadRequest, err)
}

// A read of a huge file takes what its piece takes, at any offset.
func TestReadingAHugeFile(t *testing.T) {
	g := newGround(t)
	const size = 1 << 40
	put(t, g.at("huge"), "")
	file, err := os.OpenFile(g.at("huge"), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte("end"), size-3)
	require.NoError(t, err)
	require.NoError(t, file.Close())

	content, err := g.Read(in("huge"), 0, 0)
	require.NoError(t, err)
	require.Len(t, content.Content, wire.MaxFileContent)
	require.Equal(t, int64(size), content.Size)
	content, err = g.Read(in("huge"), size-5, 0)
	require.NoError(t, err)
	require.Equal(t, "\x00\x00end", string(content.Content))
	content, err = g.Read(in("huge"), math.MaxInt64, 0)
	require.NoError(t, err)
	require.Empty(t, content.Content)

	request := write("huge", "small")
	request.Expect = sha("small")
	_, err = g.Write(request)
	requireCode(t, wire.CodeTooLarge, err, "not compared, so not said to differ")
}

func TestListing(t *testing.T) {
	g := newGround(t)
	put(t, g.at("b"), "four")
	put(t, g.at("a/inner"), "")
	link(t, g.outside, g.at("c"))
	require.NoError(t, os.Chtimes(g.at("b"), time.Time{}, time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC)))
	for _, root := range []string{"", ".", "./", "a", "a/", "a//."} {
		listed, err := g.List(in(root))
		require.NoError(t, err)
		require.NotEmpty(t, listed.Entries)
	}
	listed, err := g.List(in(""))
	require.NoError(t, err)
	require.Len(t, listed.Entries, 3)
	require.Equal(t, wire.KindDirectory, listed.Entries[0].Kind)
	require.Equal(t, wire.DirectoryEntry{
		Name: "b", Kind: wire.KindFile, Size: 4, ModifiedAt: time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC),
	}, listed.Entries[1])
	require.Equal(t, "c", listed.Entries[2].Name)
	require.Equal(t, wire.KindLink, listed.Entries[2].Kind)
	_, err = g.List(in("absent"))
	requireCode(t, wire.CodeNoSuchFile, err)
	_, err = g.List(in("b"))
	requireCode(t, wire.CodeWrongKind, err)
}

// A write creates or replaces a file, keeps its mode, makes no directory, and
// leaves nothing else behind.
func TestWriting(t *testing.T) {
	g := newGround(t)
	require.NoError(t, os.Mkdir(g.at("dir"), 0o700))
	written, err := g.Write(write("dir/file", "one\x00\xff"))
	require.NoError(t, err)
	require.Equal(t, wire.WrittenFile{SHA256: sha("one\x00\xff"), Created: true}, written)
	require.NoError(t, os.Chmod(g.at("dir/file"), 0o751))
	written, err = g.Write(write("dir/file", "two"))
	require.NoError(t, err)
	require.Equal(t, wire.WrittenFile{SHA256: sha("two")}, written)
	info, err := os.Stat(g.at("dir/file"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o751), info.Mode().Perm())
	content, err := os.ReadFile(g.at("dir/file"))
	require.NoError(t, err)
	require.Equal(t, "two", string(content))

	_, err = g.Write(write("absent/file", ""))
	requireCode(t, wire.CodeNoSuchFile, err)
	for _, path := range []string{"", "dir", "dir/file/below"} {
		_, err = g.Write(write(path, ""))
		requireCode(t, wire.CodeWrongKind, err, path)
	}
	_, err = g.Write(write("dir/file", strings.Repeat("x", wire.MaxFileContent+1)))
	requireCode(t, wire.CodeTooLarge, err)
	_, err = g.Write(write("dir/"+strings.Repeat("x", 300), ""))
	requireCode(t, wire.CodeBadRequest, err)
	_, err = g.Write(write("dir/"+strings.Repeat("x", 255), ""))
	require.NoError(t, err, "the longest name")
	require.NoError(t, os.Remove(g.at("dir/"+strings.Repeat("x", 255))))
	requireOnly(t, g.at("dir"), "file")
	requireOnly(t, g.root, "dir")
}

func requireOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	require.Equal(t, names, found)
}

// A write that expects something else than it finds changes nothing.
func TestExpectations(t *testing.T) {
	g := newGround(t)
	attempt := func(path, expect string) error {
		request := write(path, "new")
		request.Expect = expect
		_, err := g.Write(request)
		return err
	}
	for _, bad := range []string{"present", "abcd", sha("")[1:], strings.Repeat("z", 64)} {
		requireCode(t, wire.CodeBadRequest, attempt("file", bad), bad)
	}
	requireCode(t, wire.CodeFileChanged, attempt("file", sha("old")), "it does not exist")
	requireOnly(t, g.root)
	put(t, g.at("file"), "old")
	requireCode(t, wire.CodeFileChanged, attempt("file", wire.ExpectAbsent))
	requireCode(t, wire.CodeFileChanged, attempt("file", sha("other")))
	content, err := os.ReadFile(g.at("file"))
	require.NoError(t, err)
	require.Equal(t, "old", string(content))
	require.NoError(t, attempt("file", strings.ToUpper(sha("old"))))
	require.NoError(t, attempt("other", wire.ExpectAbsent))
	requireOnly(t, g.root, "file", "other")
}

// Whoever reads while a file is written sees one content or another, never a
// part, and never no file.
func TestWritesAreWhole(t *testing.T) {
	g := newGround(t)
	contents := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 200_000)}
	put(t, g.at("file"), contents[0])
	var writing sync.WaitGroup
	done := make(chan struct{})
	writing.Go(func() {
		defer close(done)
		for n := range 20 {
			if _, err := g.Write(write("file", contents[n%2])); err != nil {
				t.Errorf("write: %v", err)
			}
		}
	})
	defer writing.Wait()
	for {
		content, err := os.ReadFile(g.at("file"))
		require.NoError(t, err)
		require.Contains(t, contents, string(content))
		select {
		case <-done:
			requireOnly(t, g.root, filepath.Base(g.at("file")))
			return
		default:
		}
	}
}
