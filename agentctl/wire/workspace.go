package wire

import "time"

// Routes of the workspace of an instance. What they reach is decided by the
// roots that the instance was created with, and by nothing in a request
// (S-002.5).
const (
	RouteFiles       = "/api/v1/instances/{id}/files"         // GET: a directory
	RouteFileContent = "/api/v1/instances/{id}/files/content" // GET, PUT: a file
	RouteGitStatus   = "/api/v1/instances/{id}/git/status"    // GET
	RouteGitDiff     = "/api/v1/instances/{id}/git/diff"      // GET
	RouteGitLog      = "/api/v1/instances/{id}/git/log"       // GET
)

// Query parameters of the routes of the workspace. QueryRoot and QueryPath are
// the fields of a Place.
const (
	QueryRoot   = "root"
	QueryPath   = "path"
	QueryOffset = "offset" // bytes, of a file
	QueryLimit  = "limit"  // bytes of a file, commits of a log; 0 or absent: the most
	QuerySkip   = "skip"   // commits
	QueryStaged = "staged" // "true": what is staged, instead of what is not
)

// Bounds of the routes of the workspace.
const (
	MaxFileContent      = 2 << 20          // bytes of a file in one read or write
	MaxDirectoryEntries = 10_000           // entries told of one directory
	MaxGitDiff          = 4 << 20          // bytes of a patch
	MaxGitChanges       = 5_000            // entries of a status
	MaxGitCommits       = 500              // commits in one answer
	MaxGitTime          = 10 * time.Second // for everything that git does for one request
)

// Codes of refusals by the routes of the workspace, beside the common ones.
const (
	CodeOutsideWorkspace Code = "outside_workspace" // 403: the place is not below the root (S-002.5)
	CodeFileDenied       Code = "file_denied"       // 403: the operating system does not allow it
	CodeNoSuchFile       Code = "no_such_file"      // 404
	CodeFileChanged      Code = "file_changed"      // 409: the file is not what the writer expects
	CodeWrongKind        Code = "wrong_kind"        // 422: a directory, link or special file where a file is needed, or the reverse
	CodeNoRepository     Code = "no_repository"     // 422: the root is not the top of a git work tree
	CodeGitFailed        Code = "git_failed"        // 500: git is missing, failed, or took over MaxGitTime
)

// Place names a file or a directory of an instance. Path is relative to the
// root, with slashes, without ".." and valid UTF-8; empty is the root itself.
type Place struct {
	Root int    `json:"root,omitempty"` // index into the instance's roots; 0 is the workspace
	Path string `json:"path"`
}

// FileContent is a piece of a file. Content is base64 in JSON, so that any
// bytes pass.
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

// EntryKind tells the entries of a directory apart.
type EntryKind string

// Kinds of entries. A link is never followed to tell its kind.
const (
	KindFile      EntryKind = "file"
	KindDirectory EntryKind = "directory"
	KindLink      EntryKind = "link"
	KindSpecial   EntryKind = "special" // device, pipe or socket
)

// DirectoryEntry is one entry of a directory. Size is in bytes, of files only.
// ModifiedAt is left out if it is outside the years 1 to 9999.
type DirectoryEntry struct {
	Name       string    `json:"name"`
	Kind       EntryKind `json:"kind"`
	Size       int64     `json:"size,omitempty"`
	ModifiedAt time.Time `json:"modified_at,omitzero"`
}

// Directory is a list of entries by name. Truncated: there are more than
// MaxDirectoryEntries, and which of them are told is open.
type Directory struct {
	Entries   []DirectoryEntry `json:"entries"`
	Truncated bool             `json:"truncated,omitempty"`
}

// GitStatus compares work tree, index and newest commit. Truncated: there are
// more than MaxGitChanges.
type GitStatus struct {
	Commit    string      `json:"commit,omitempty"` // empty before the first one
	Branch    string      `json:"branch,omitempty"` // empty if detached
	Changes   []GitChange `json:"changes"`
	Truncated bool        `json:"truncated,omitempty"`
}

// GitChange is one path that differs. Index and Worktree are git's letters, "."
// for unchanged, both "?" for an untracked path, which ends in a slash if it is
// a directory. From is where a renamed or copied file was.
type GitChange struct {
	Path     string `json:"path"`
	From     string `json:"from,omitempty"`
	Index    string `json:"index"`
	Worktree string `json:"worktree"`
}

// GitDiff is a patch, base64 in JSON, of at most MaxGitDiff bytes.
type GitDiff struct {
	Patch     []byte `json:"patch"`
	Truncated bool   `json:"truncated,omitempty"`
}

// GitLog lists commits, the newest first.
type GitLog struct {
	Commits []GitCommit `json:"commits"`
}

// GitCommit is one commit. At is its author's time, if it is one between the
// years 1 and 9999.
type GitCommit struct {
	ID      string    `json:"id"`
	Parents []string  `json:"parents,omitempty"`
	Author  string    `json:"author"`
	Email   string    `json:"email"`
	At      time.Time `json:"at,omitzero"`
	Subject string    `json:"subject"`
}
