package api

import (
	"net/http"

	"github.com/kandev/recovery/userapi"
)

// action answers one request with the services of an open server. An error
// becomes the answer.
type action func(w http.ResponseWriter, r *http.Request, svc *Services) error

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+userapi.RouteHealth, s.health)
	mux.Handle("GET "+userapi.RouteStatus, s.authenticated(http.HandlerFunc(s.status)))
	mux.Handle("GET "+userapi.RouteMetrics, s.authenticated(http.HandlerFunc(s.metrics)))
	mux.Handle("GET "+userapi.RouteSurvival, s.authenticated(s.always(s.getSurvival)))
	mux.Handle("PUT "+userapi.RouteSurvival, s.authenticated(s.always(s.setSurvival)))
	for pattern, do := range map[string]action{
		"PUT " + userapi.RouteProfile:    s.putProfile,
		"GET " + userapi.RouteProfile:    s.getProfile,
		"POST " + userapi.RouteSessions:  s.createSession,
		"GET " + userapi.RouteSessions:   s.listSessions,
		"GET " + userapi.RouteSession:    s.getSession,
		"PUT " + userapi.RoutePrompt:     s.prompt,
		"POST " + userapi.RouteCancel:    s.cancel,
		"POST " + userapi.RouteStop:      s.stop,
		"PUT " + userapi.RoutePermission: s.answerPermission,
		"GET " + userapi.RouteEvents:     s.events,
		"GET " + userapi.RouteHistory:    s.transitions,

		"GET " + userapi.RouteFiles:       s.listFiles,
		"GET " + userapi.RouteFileContent: s.readFile,
		"PUT " + userapi.RouteFileContent: s.writeFile,
		"GET " + userapi.RouteGitStatus:   s.gitStatus,
		"GET " + userapi.RouteGitDiff:     s.gitDiff,
		"GET " + userapi.RouteGitLog:      s.gitLog,
	} {
		mux.Handle(pattern, s.authenticated(s.open(do)))
	}
	mux.Handle("/", s.authenticated(http.HandlerFunc(s.noRoute(mux))))
	return s.local(mux)
}

// open lets requests through once the services are there.
func (s *Server) open(do action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		svc := s.services.Load()
		if svc == nil {
			s.refuse(w, r, s.waiting())
			return
		}
		if err := do(w, r, svc); err != nil {
			s.refuse(w, r, err)
		}
	})
}

// always lets requests through that need no services.
func (s *Server) always(do func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := do(w, r); err != nil {
			s.refuse(w, r, err)
		}
	})
}

func (s *Server) waiting() *userapi.Error {
	reason := s.cfg.Status().WaitingFor
	if reason == "" {
		reason = "its own start"
	}
	return &userapi.Error{
		Code: userapi.CodeUnavailable, Retryable: true,
		Message: "the backend is not ready: it waits for " + reason,
		Remedy:  "try again; the status page tells how far it is",
	}
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, http.StatusOK, map[string]string{"status": "ok"})
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, http.StatusOK, s.cfg.Status())
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	s.cfg.Counters.Handler().ServeHTTP(w, r)
}

// noRoute answers for paths and methods that are not served.
func (s *Server) noRoute(mux *http.ServeMux) http.HandlerFunc {
	methods := []string{http.MethodGet, http.MethodPut, http.MethodPost}
	return func(w http.ResponseWriter, r *http.Request) {
		for _, method := range methods {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/" {
				s.refuseWith(w, r, http.StatusMethodNotAllowed, &userapi.Error{
					Code: userapi.CodeBadRequest, Message: "this route does not take " + r.Method, Remedy: "use " + method,
				})
				return
			}
		}
		s.refuse(w, r, &userapi.Error{Code: userapi.CodeNotFound, Message: "there is no such route"})
	}
}
