package workspace

import (
	"bytes"
	"context"
	"strings"

	"github.com/kandev/recovery/agentctl/wire"
)

// maxStatus bounds, in bytes, what git prints of a status.
const maxStatus = 4 << 20

// Status tells how the root's work tree, its index and its newest commit
// differ. Of submodules only the commit is compared.
func (w *Workspace) Status(ctx context.Context, root int) (wire.GitStatus, error) {
	ctx, done, s, err := w.git(ctx, root)
	if err != nil {
		return wire.GitStatus{}, err
	}
	defer done()
	output, truncated, err := s.run(ctx, maxStatus, "status", "--porcelain=v2", "-z", "--branch",
		"--no-ahead-behind", "--untracked-files=normal", "--ignore-submodules=dirty", "--find-renames")
	if err != nil {
		return wire.GitStatus{}, failed(err)
	}
	return parseStatus(output, truncated)
}

// parseStatus reads git's porcelain format 2 with a NUL after each record. The
// last record of output that was cut is not whole.
func parseStatus(output []byte, truncated bool) (wire.GitStatus, error) {
	status := wire.GitStatus{Changes: []wire.GitChange{}, Truncated: truncated}
	records := output[:bytes.LastIndexByte(output, 0)+1]
	next := func() (string, bool) {
		record, rest, found := bytes.Cut(records, []byte{0})
		records = rest
		return string(record), found
	}
	for record, ok := next(); ok; record, ok = next() {
		if header, ok := strings.CutPrefix(record, "# "); ok {
			describeHead(&status, header)
			continue
		}
		if len(status.Changes) == wire.MaxGitChanges {
			status.Truncated = true
			return status, nil
		}
		change, moved, ok := parseChange(record)
		if moved {
			change.From, ok = next()
		}
		if !ok && truncated {
			return status, nil
		}
		if !ok {
			return wire.GitStatus{}, refuse(wire.CodeGitFailed, "git printed a status that cannot be read")
		}
		status.Changes = append(status.Changes, change)
	}
	return status, nil
}

func describeHead(status *wire.GitStatus, header string) {
	switch name, value, _ := strings.Cut(header, " "); {
	case name == "branch.oid" && value != "(initial)":
		status.Commit = value
	case name == "branch.head" && value != "(detached)":
		status.Branch = value
	}
}

// Fields of a record before its path, by the record's type: changed, moved,
// unmerged.
var fieldsBefore = map[string]int{"1": 8, "2": 9, "u": 10}

// parseChange reads one record; moved says that another one follows with where
// the file was.
func parseChange(record string) (change wire.GitChange, moved, ok bool) {
	kind, rest, found := strings.Cut(record, " ")
	if !found {
		return change, false, false
	}
	if kind == "?" {
		return wire.GitChange{Path: rest, Index: "?", Worktree: "?"}, false, true
	}
	before, known := fieldsBefore[kind]
	fields := strings.SplitN(record, " ", before+1)
	if !known || len(fields) <= before || len(fields[1]) != 2 {
		return change, false, false
	}
	return wire.GitChange{
		Path: fields[before], Index: fields[1][:1], Worktree: fields[1][1:],
	}, kind == "2", true
}
