package workspace_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/agentctl/workspace"
)

// operations are all that takes a place, by what they do.
var operations = map[string]func(context.Context, *workspace.Workspace, wire.Place) error{
	"read": func(_ context.Context, w *workspace.Workspace, p wire.Place) error {
		_, err := w.Read(p, 0, 0)
		return err
	},
	"list": func(_ context.Context, w *workspace.Workspace, p wire.Place) error {
		_, err := w.List(p)
		return err
	},
	"write": func(_ context.Context, w *workspace.Workspace, p wire.Place) error {
		_, err := w.Write(wire.WriteFile{Place: p, Content: []byte("overwritten")})
		return err
	},
	"diff": func(ctx context.Context, w *workspace.Workspace, p wire.Place) error {
		_, err := w.Diff(ctx, p, false)
		return err
	},
	"log": func(ctx context.Context, w *workspace.Workspace, p wire.Place) error {
		_, err := w.Log(ctx, p, 0, 0)
		return err
	},
}

// S-002.5: no way of naming a place leads out of the root, for any operation.
func TestNamesThatLeadOut(t *testing.T) {
	g := newGround(t)
	put(t, g.at("dir/inside"), "inside")
	git(t, g.root, "init")
	places := map[string]wire.Place{
		"parent":                   in("../outside/file"),
		"parent, deeper":           in("dir/../../outside/file"),
		"parent, back inside":      in("dir/../dir/inside"),
		"parent itself":            in(".."),
		"absolute":                 in(filepath.ToSlash(g.outside) + "/file"),
		"absolute, inside":         in(filepath.ToSlash(g.root) + "/dir/inside"),
		"root of the host":         in("/"),
		"root that does not exist": {Root: 1, Path: "dir/inside"},
		"negative root":            {Root: -1, Path: "dir/inside"},
	}
	for name, do := range operations {
		for what, place := range places {
			requireCode(t, wire.CodeOutsideWorkspace, do(t.Context(), g.Workspace, place), name, what)
		}
		for _, path := range []string{"dir/in\x00side", "dir/\xff"} {
			requireCode(t, wire.CodeBadRequest, do(t.Context(), g.Workspace, in(path)), name)
		}
	}
	g.untouched(t)
}

// S-002.5: no link leads out of the root, wherever it is in a path. A link that
// stays inside is followed to read, unless it is absolute.
func TestLinksThatLeadOut(t *testing.T) {
	g := newGround(t)
	put(t, g.at("dir/inside"), "inside")
	link(t, g.outside, g.at("absolute"))
	link(t, "../outside", g.at("relative"))
	link(t, "../../outside", g.at("dir/deep"))
	link(t, "absolute", g.at("chain"))
	link(t, "dir/../../outside", g.at("winding"))
	link(t, filepath.Join(g.outside, "file"), g.at("file"))
	link(t, g.at("dir"), g.at("absolute-inside"))
	link(t, "/proc/self/root/etc", g.at("proc"))

	for _, path := range []string{
		"absolute", "relative", "dir/deep", "chain", "winding", "proc", "absolute-inside",
	} {
		_, err := g.List(in(path))
		requireCode(t, wire.CodeOutsideWorkspace, err, path)
		for _, file := range []string{path + "/file", path + "/new"} {
			_, err = g.Read(in(file), 0, 0)
			requireCode(t, wire.CodeOutsideWorkspace, err, file)
			_, err = g.Write(write(file, "overwritten"))
			requireCode(t, wire.CodeOutsideWorkspace, err, file)
		}
	}
	_, err := g.Read(in("file"), 0, 0)
	requireCode(t, wire.CodeOutsideWorkspace, err)
	_, err = g.Write(write("file", "overwritten"))
	requireCode(t, wire.CodeWrongKind, err, "a link is not written through")
	g.untouched(t)

	link(t, "../dir", g.at("other/inner"))
	content, err := g.Read(in("other/inner/inside"), 0, 0)
	require.NoError(t, err)
	require.Equal(t, "inside", string(content.Content))
	link(t, "loop", g.at("loop"))
	_, err = g.Read(in("loop"), 0, 0)
	requireCode(t, wire.CodeWrongKind, err)
}

// untouched checks that the directory beside the root is as it was.
func (g ground) untouched(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(g.outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	content, err := os.ReadFile(filepath.Join(g.outside, "file"))
	require.NoError(t, err)
	require.Equal(t, secret, string(content))
}

// S-002.5: unknown and empty roots reach nothing, instead of everything.
func TestWithoutRootsNothingIsReached(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "file", "here")
	for what, w := range map[string]*workspace.Workspace{"zero": {}, "nil": open(t), "empty": open(t, []string{}...)} {
		for name, do := range operations {
			requireCode(t, wire.CodeOutsideWorkspace, do(t.Context(), w, in("file")), what, name)
		}
		_, err := w.Status(t.Context(), 0)
		requireCode(t, wire.CodeOutsideWorkspace, err)
	}
}

// S-002.5: a root is the directory that it was at the start. Whatever takes its
// name later is not one, and to find that out does not wait.
func TestARootThatWasReplaced(t *testing.T) {
	for what, replace := range map[string]func(t *testing.T, g ground){
		"link":           func(t *testing.T, g ground) { link(t, g.outside, g.root) },
		"directory":      func(t *testing.T, g ground) { put(t, g.at("file"), secret) },
		"another's name": func(t *testing.T, g ground) { require.NoError(t, os.Rename(g.outside, g.root)) },
	} {
		g := newGround(t)
		put(t, g.at("file"), "inside")
		require.NoError(t, os.Rename(g.root, g.root+"-moved"))
		replace(t, g)
		for name, do := range operations {
			requireCode(t, wire.CodeOutsideWorkspace, do(t.Context(), g.Workspace, in("file")), what, name)
		}
	}
}

// S-002.5: each root is a place of its own.
func TestSeveralRoots(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	put(t, filepath.Join(first, "file"), "first")
	put(t, filepath.Join(second, "file"), "second")
	link(t, filepath.Join(second, "file"), filepath.Join(first, "link"))
	w := open(t, first, second)
	for n, want := range []string{"first", "second"} {
		content, err := w.Read(wire.Place{Root: n, Path: "file"}, 0, 0)
		require.NoError(t, err)
		require.Equal(t, want, string(content.Content))
	}
	_, err := w.Read(in("link"), 0, 0)
	requireCode(t, wire.CodeOutsideWorkspace, err)
	_, err = workspace.Open([]string{first, filepath.Join(first, "file")})
	require.ErrorIs(t, err, workspace.ErrRoot)
	require.NotContains(t, err.Error(), first)
}

// No refusal and no other error names a path of the host.
func TestErrorsNameNoPath(t *testing.T) {
	g := newGround(t)
	link(t, g.outside, g.at("link"))
	for name, do := range operations {
		for _, path := range []string{"absent", "link", "link/file", "absent/file", "../outside", "x" + string(make([]byte, 300))} {
			if err := do(t.Context(), g.Workspace, in(path)); err != nil {
				require.NotContains(t, err.Error(), filepath.Dir(g.root), name)
			}
		}
	}
}
