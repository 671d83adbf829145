package server

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/agentctl/workspace"
)

// view is what a request asks to see of a workspace. Absent parameters are
// zero.
type view struct {
	place               wire.Place
	offset, limit, skip int64
	staged              bool
}

func listFiles(_ context.Context, files *workspace.Workspace, v view) (any, error) {
	return files.List(v.place)
}

func readFile(_ context.Context, files *workspace.Workspace, v view) (any, error) {
	return files.Read(v.place, v.offset, v.limit)
}

func gitStatus(ctx context.Context, files *workspace.Workspace, v view) (any, error) {
	return files.Status(ctx, v.place.Root)
}

func gitDiff(ctx context.Context, files *workspace.Workspace, v view) (any, error) {
	return files.Diff(ctx, v.place, v.staged)
}

func gitLog(ctx context.Context, files *workspace.Workspace, v view) (any, error) {
	return files.Log(ctx, v.place, v.skip, v.limit)
}

func (s *Server) writeFile(_ context.Context, r *http.Request, body []byte) (any, error) {
	request, err := decode[wire.WriteFile](body)
	if err != nil {
		return nil, err
	}
	if request.Content == nil {
		return nil, badRequest("there is no content; an empty file is an empty text")
	}
	files, err := s.cfg.Instances.Workspace(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return files.Write(request)
}

// looking is an action that shows a part of an instance's workspace.
func (s *Server) looking(show func(context.Context, *workspace.Workspace, view) (any, error)) action {
	return func(ctx context.Context, r *http.Request, _ []byte) (any, error) {
		v, err := viewOf(r.URL.Query())
		if err != nil {
			return nil, err
		}
		files, err := s.cfg.Instances.Workspace(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return show(ctx, files, v)
	}
}

func viewOf(query url.Values) (view, error) {
	var v view
	var root int64
	for name, into := range map[string]*int64{
		wire.QueryRoot: &root, wire.QueryOffset: &v.offset, wire.QueryLimit: &v.limit, wire.QuerySkip: &v.skip,
	} {
		if !query.Has(name) {
			continue
		}
		n, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil {
			return view{}, badRequest(name + " is not a whole number")
		}
		*into = n
	}
	if query.Has(wire.QueryStaged) {
		staged, err := strconv.ParseBool(query.Get(wire.QueryStaged))
		if err != nil {
			return view{}, badRequest("staged is neither true nor false")
		}
		v.staged = staged
	}
	v.place = wire.Place{Root: int(root), Path: query.Get(wire.QueryPath)}
	return v, nil
}
