package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/kandev/recovery/agentctl/wire"
)

// ListFiles lists a directory of the instance's workspace.
func (c *Client) ListFiles(ctx context.Context, id string, place wire.Place) (wire.Directory, error) {
	var listed wire.Directory
	err := c.look(ctx, wire.RouteFiles, id, place, nil, &listed)
	return listed, err
}

// ReadFile reads up to limit bytes of a file from the offset on; limit 0 means
// wire.MaxFileContent, which is the most.
func (c *Client) ReadFile(ctx context.Context, id string, place wire.Place, offset, limit int64) (wire.FileContent, error) {
	var content wire.FileContent
	err := c.look(ctx, wire.RouteFileContent, id, place, url.Values{
		wire.QueryOffset: {number(offset)}, wire.QueryLimit: {number(limit)},
	}, &content)
	return content, err
}

// WriteFile puts a file in place whole. Repeating it with an expectation that it
// has already fulfilled is refused with CodeFileChanged.
func (c *Client) WriteFile(ctx context.Context, id string, request wire.WriteFile) (wire.WrittenFile, error) {
	var written wire.WrittenFile
	if request.Content == nil {
		request.Content = []byte{} // an empty file; null is no content
	}
	err := c.call(ctx, http.MethodPut, path(wire.RouteFileContent, id), request, &written)
	return written, err
}

// GitStatus compares the root's work tree with its repository.
func (c *Client) GitStatus(ctx context.Context, id string, root int) (wire.GitStatus, error) {
	var status wire.GitStatus
	err := c.look(ctx, wire.RouteGitStatus, id, wire.Place{Root: root}, nil, &status)
	return status, err
}

// GitDiff returns a patch of what is not staged below the place, or of what is.
func (c *Client) GitDiff(ctx context.Context, id string, place wire.Place, staged bool) (wire.GitDiff, error) {
	var diff wire.GitDiff
	err := c.look(ctx, wire.RouteGitDiff, id, place, url.Values{
		wire.QueryStaged: {strconv.FormatBool(staged)},
	}, &diff)
	return diff, err
}

// GitLog lists commits of the place after skip of them; limit 0 means
// wire.MaxGitCommits, which is the most.
func (c *Client) GitLog(ctx context.Context, id string, place wire.Place, skip, limit int64) (wire.GitLog, error) {
	var log wire.GitLog
	err := c.look(ctx, wire.RouteGitLog, id, place, url.Values{
		wire.QuerySkip: {number(skip)}, wire.QueryLimit: {number(limit)},
	}, &log)
	return log, err
}

// look asks for a part of a workspace. It waits for what git may take in
// addition to the client's timeout.
func (c *Client) look(ctx context.Context, route, id string, place wire.Place, query url.Values, out any) error {
	if query == nil {
		query = url.Values{}
	}
	query.Set(wire.QueryRoot, strconv.Itoa(place.Root))
	query.Set(wire.QueryPath, place.Path)
	limit := c.cfg.HTTPTimeout
	if limit > 0 {
		limit += wire.MaxGitTime
	}
	return c.callWithin(ctx, limit, http.MethodGet, path(route, id)+"?"+query.Encode(), nil, out)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
