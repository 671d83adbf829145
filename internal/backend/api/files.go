package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/userapi"
)

// maxFileBody bounds a write's body: its content in base64, and the rest.
const maxFileBody = userapi.MaxFileContent/3*4 + 64<<10

// onFiles runs one operation on the files of the session's agent and answers with
// what it returns. Which directories that may reach is the control server's to
// know (S-002.5): nothing about roots is sent along.
func onFiles[T any](
	s *Server, w http.ResponseWriter, r *http.Request, svc *Services, do func(context.Context, agent) (T, error),
) error {
	a, err := s.agentOf(r.Context(), svc, r.PathValue("id"))
	if err != nil {
		return err
	}
	var done T
	err = s.call(r.Context(), a, func(ctx context.Context) (err error) {
		done, err = do(ctx, a)
		return err
	})
	if err != nil {
		return err
	}
	s.answer(w, r, http.StatusOK, done)
	return nil
}

// look answers with a part of the session's workspace.
func look[T any](
	s *Server, w http.ResponseWriter, r *http.Request, svc *Services, ask func(context.Context, agent, lookup) (T, error),
) error {
	l, err := lookupOf(r.URL.Query())
	if err != nil {
		return err
	}
	return onFiles(s, w, r, svc, func(ctx context.Context, a agent) (T, error) { return ask(ctx, a, l) })
}

// lookup are the parameters of a request that looks at the workspace. Those
// that are absent are zero.
type lookup struct {
	place               wire.Place
	offset, limit, skip int64
	staged              bool
}

func lookupOf(query url.Values) (lookup, error) {
	var l lookup
	var root int64
	numbers := map[string]*int64{"root": &root, "offset": &l.offset, "limit": &l.limit, "skip": &l.skip}
	for name, values := range query {
		var err error
		switch into, number := numbers[name]; {
		case number:
			*into, err = strconv.ParseInt(values[0], 10, 64)
		case name == "path":
			l.place.Path = values[0]
		case name == "staged":
			l.staged, err = strconv.ParseBool(values[0])
		default:
			return lookup{}, unusable(name)
		}
		if err != nil {
			return lookup{}, unusable(name)
		}
	}
	l.place.Root = int(root)
	return l, nil
}

func unusable(parameter string) *userapi.Error {
	return &userapi.Error{
		Code: userapi.CodeBadRequest, Message: "the parameter " + strconv.Quote(parameter) + " cannot be used",
		Remedy: "use root, path, offset, limit, skip and staged, with whole numbers and true or false",
	}
}

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request, svc *Services) error {
	return look(s, w, r, svc, func(ctx context.Context, a agent, l lookup) (userapi.Directory, error) {
		found, err := a.client.ListFiles(ctx, a.InstanceID, l.place)
		return viewDirectory(found), err
	})
}

func (s *Server) readFile(w http.ResponseWriter, r *http.Request, svc *Services) error {
	return look(s, w, r, svc, func(ctx context.Context, a agent, l lookup) (userapi.FileContent, error) {
		found, err := a.client.ReadFile(ctx, a.InstanceID, l.place, l.offset, l.limit)
		return userapi.FileContent(found), err
	})
}

func (s *Server) writeFile(w http.ResponseWriter, r *http.Request, svc *Services) error {
	var request userapi.WriteFile
	if err := decodeWithin(w, r, maxFileBody, &request); err != nil {
		return err
	}
	if request.Content == nil {
		return invalid("there is no content", "an empty file has an empty text as its content")
	}
	return onFiles(s, w, r, svc, func(ctx context.Context, a agent) (userapi.WrittenFile, error) {
		written, err := a.client.WriteFile(ctx, a.InstanceID, wire.WriteFile{
			Place: wire.Place(request.Place), Content: request.Content, Expect: request.Expect,
		})
		return userapi.WrittenFile(written), err
	})
}

func (s *Server) gitStatus(w http.ResponseWriter, r *http.Request, svc *Services) error {
	return look(s, w, r, svc, func(ctx context.Context, a agent, l lookup) (userapi.GitStatus, error) {
		found, err := a.client.GitStatus(ctx, a.InstanceID, l.place.Root)
		return viewStatus(found), err
	})
}

func (s *Server) gitDiff(w http.ResponseWriter, r *http.Request, svc *Services) error {
	return look(s, w, r, svc, func(ctx context.Context, a agent, l lookup) (userapi.GitDiff, error) {
		found, err := a.client.GitDiff(ctx, a.InstanceID, l.place, l.staged)
		return userapi.GitDiff(found), err
	})
}

func (s *Server) gitLog(w http.ResponseWriter, r *http.Request, svc *Services) error {
	return look(s, w, r, svc, func(ctx context.Context, a agent, l lookup) (userapi.GitLog, error) {
		found, err := a.client.GitLog(ctx, a.InstanceID, l.place, l.skip, l.limit)
		return viewLog(found), err
	})
}

func viewDirectory(d wire.Directory) userapi.Directory {
	out := userapi.Directory{Entries: make([]userapi.DirectoryEntry, len(d.Entries)), Truncated: d.Truncated}
	for n, e := range d.Entries {
		out.Entries[n] = userapi.DirectoryEntry{Name: e.Name, Kind: string(e.Kind), Size: e.Size, ModifiedAt: e.ModifiedAt}
	}
	return out
}

func viewStatus(s wire.GitStatus) userapi.GitStatus {
	out := userapi.GitStatus{
		Commit: s.Commit, Branch: s.Branch, Changes: make([]userapi.GitChange, len(s.Changes)), Truncated: s.Truncated,
	}
	for n, c := range s.Changes {
		out.Changes[n] = userapi.GitChange(c)
	}
	return out
}

func viewLog(l wire.GitLog) userapi.GitLog {
	out := userapi.GitLog{Commits: make([]userapi.GitCommit, len(l.Commits))}
	for n, c := range l.Commits {
		out.Commits[n] = userapi.GitCommit(c)
	}
	return out
}
