package userapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Routes of a session's workspace. They need a session with an agent, which may
// be busy, and reach nothing beyond the roots that the agent was started with
// (S-002.5).
const (
	RouteFiles       = "/api/v1/sessions/{id}/files"         // GET ?root&path
	RouteFileContent = "/api/v1/sessions/{id}/files/content" // GET ?root&path&offset&limit, PUT
	RouteGitStatus   = "/api/v1/sessions/{id}/git/status"    // GET ?root
	RouteGitDiff     = "/api/v1/sessions/{id}/git/diff"      // GET ?root&path&staged
	RouteGitLog      = "/api/v1/sessions/{id}/git/log"       // GET ?root&path&skip&limit
)

// MaxFileContent bounds, in bytes, one read and one write of a file.
const MaxFileContent = 2 << 20

// Codes of refusals by the routes of the workspace, beside the common ones. A
// write whose expectation is not met is CodeConflict.
const (
	CodeOutsideWorkspace Code = "outside_workspace" // 403: the place is not below the root
	CodeDenied           Code = "denied"            // 403: the operating system does not allow it
)

// Place names a file or a directory. Path is relative to the root, with
// slashes and without ".."; empty is the root itself.
type Place struct {
	Root int    `json:"root,omitempty"` // index into the session's roots; 0 is the workspace
	Path string `json:"path"`
}

// FileContent is a piece of a file; base64 in JSON.
type FileContent struct {
	Content []byte `json:"content"`
	Offset  int64  `json:"offset"`
	Size    int64  `json:"size"`             // of the whole file, in bytes
	SHA256  string `json:"sha256,omitempty"` // hex, of the whole file; only if Content is all of it
}

// ExpectAbsent is the Expect of a write that must create the file.
const ExpectAbsent = "absent"

// WriteFile replaces a file whole, or creates it in a directory that exists.
// Expect is what must be there: empty is anything, ExpectAbsent is nothing,
// otherwise the SHA-256 of the file's content, in hex.
type WriteFile struct {
	Place
	Content []byte `json:"content"` // at most MaxFileContent bytes
	Expect  string `json:"expect,omitempty"`
}

// WrittenFile answers a write.
type WrittenFile struct {
	SHA256  string `json:"sha256"` // hex, of what is there now
	Created bool   `json:"created,omitempty"`
}

// Directory is a list of entries by name, of at most 10,000.
type Directory struct {
	Entries   []DirectoryEntry `json:"entries"`
	Truncated bool             `json:"truncated,omitempty"`
}

// DirectoryEntry is one entry: a "file", "directory", "link" or "special". Size
// is in bytes, of files only.
type DirectoryEntry struct {
	Name       string    `json:"name"`
	Kind       string    `json:"kind"`
	Size       int64     `json:"size,omitempty"`
	ModifiedAt time.Time `json:"modified_at,omitzero"`
}

// GitStatus compares work tree, index and newest commit, of at most 5,000
// paths.
type GitStatus struct {
	Commit    string      `json:"commit,omitempty"` // empty before the first one
	Branch    string      `json:"branch,omitempty"` // empty if detached
	Changes   []GitChange `json:"changes"`
	Truncated bool        `json:"truncated,omitempty"`
}

// GitChange is one path that differs. Index and Worktree are git's letters, "."
// for unchanged, both "?" for an untracked path. From is where a renamed or
// copied file was.
type GitChange struct {
	Path     string `json:"path"`
	From     string `json:"from,omitempty"`
	Index    string `json:"index"`
	Worktree string `json:"worktree"`
}

// GitDiff is a patch of at most 4 MiB; base64 in JSON.
type GitDiff struct {
	Patch     []byte `json:"patch"`
	Truncated bool   `json:"truncated,omitempty"`
}

// GitLog lists commits, the newest first, at most 500.
type GitLog struct {
	Commits []GitCommit `json:"commits"`
}

// GitCommit is one commit. At is its author's time.
type GitCommit struct {
	ID      string    `json:"id"`
	Parents []string  `json:"parents,omitempty"`
	Author  string    `json:"author"`
	Email   string    `json:"email"`
	At      time.Time `json:"at,omitzero"`
	Subject string    `json:"subject"`
}

// Files lists a directory of the session's workspace.
func (c *Client) Files(ctx context.Context, id string, place Place) (Directory, error) {
	var out Directory
	return out, c.look(ctx, RouteFiles, id, place, nil, &out)
}

// ReadFile reads up to limit bytes of a file from the offset on; limit 0 means
// MaxFileContent, which is the most.
func (c *Client) ReadFile(ctx context.Context, id string, place Place, offset, limit int64) (FileContent, error) {
	var out FileContent
	return out, c.look(ctx, RouteFileContent, id, place, url.Values{
		"offset": {strconv.FormatInt(offset, 10)}, "limit": {strconv.FormatInt(limit, 10)},
	}, &out)
}

// WriteFile puts a file in place whole.
func (c *Client) WriteFile(ctx context.Context, id string, request WriteFile) (WrittenFile, error) {
	var out WrittenFile
	if request.Content == nil {
		request.Content = []byte{} // an empty file; null is no content
	}
	return out, c.call(ctx, http.MethodPut, route(RouteFileContent, "id", id), request, &out)
}

// GitStatus compares the work tree of a root with its repository.
func (c *Client) GitStatus(ctx context.Context, id string, root int) (GitStatus, error) {
	var out GitStatus
	return out, c.look(ctx, RouteGitStatus, id, Place{Root: root}, nil, &out)
}

// GitDiff returns a patch of what is not staged below the place, or of what is.
func (c *Client) GitDiff(ctx context.Context, id string, place Place, staged bool) (GitDiff, error) {
	var out GitDiff
	return out, c.look(ctx, RouteGitDiff, id, place, url.Values{"staged": {strconv.FormatBool(staged)}}, &out)
}

// GitLog lists commits of the place after skip of them; limit 0 means the most.
func (c *Client) GitLog(ctx context.Context, id string, place Place, skip, limit int64) (GitLog, error) {
	var out GitLog
	return out, c.look(ctx, RouteGitLog, id, place, url.Values{
		"skip": {strconv.FormatInt(skip, 10)}, "limit": {strconv.FormatInt(limit, 10)},
	}, &out)
}

func (c *Client) look(ctx context.Context, pattern, id string, place Place, query url.Values, out any) error {
	if query == nil {
		query = url.Values{}
	}
	query.Set("root", strconv.Itoa(place.Root))
	query.Set("path", place.Path)
	return c.call(ctx, http.MethodGet, route(pattern, "id", id)+"?"+query.Encode(), nil, out)
}
