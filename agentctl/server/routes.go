package server

import (
	"net/http"

	"github.com/kandev/recovery/agentctl/wire"
)

// route is one method and path of the server.
type route struct {
	pattern string // in ServeMux syntax
	serve   http.HandlerFunc
}

// table lists every route that exists.
func (s *Server) table() []route {
	return []route{
		{"GET " + wire.RouteHealth, s.open(s.health)},
		{"GET " + wire.RouteIdentity, s.open(s.identity)},
		{"POST " + wire.RouteHandshake, s.open(s.handshake)},
		{"POST " + wire.RouteProve, s.open(s.prove)},

		// The authority judges these under its own lock, together with their effect.
		{"POST " + wire.RouteRotate, s.open(s.rotate)},
		{"POST " + wire.RouteShutdown, s.open(s.shutdown)},
		{"POST " + wire.RouteClaim, s.open(s.claim)},
		{"POST " + wire.RouteConfirm, s.open(s.confirm, s.cfg.Authority.Check)},

		{"GET " + wire.RouteDetails, s.driving(s.details)},
		{"GET " + wire.RouteMemory, s.driving(s.memory)},
		{"GET " + wire.RouteInstances, s.driving(s.list)},
		{"PUT " + wire.RouteInstance, s.carrying(s.create)},
		{"GET " + wire.RouteInstance, s.driving(s.get)},
		{"DELETE " + wire.RouteInstance, s.driving(s.stop)},
		{"PUT " + wire.RouteTurn, s.carrying(s.prompt)},
		{"POST " + wire.RouteCancel, s.driving(s.cancel)},
		{"POST " + wire.RoutePermission, s.driving(s.answerPermission)},
		{"GET " + wire.RouteTurnOutcome, s.driving(s.turnOutcome)},
		{"POST " + wire.RouteAckOutcome, s.driving(s.ackTurnOutcome)},
		{"GET " + wire.RouteStartup, s.driving(s.startup)},
		{"GET " + wire.RouteEvents, s.events},

		{"GET " + wire.RouteFiles, s.driving(s.looking(listFiles))},
		{"GET " + wire.RouteFileContent, s.driving(s.looking(readFile))},
		{"PUT " + wire.RouteFileContent, s.carrying(s.writeFile)},
		{"GET " + wire.RouteGitStatus, s.driving(s.looking(gitStatus))},
		{"GET " + wire.RouteGitDiff, s.driving(s.looking(gitDiff))},
		{"GET " + wire.RouteGitLog, s.driving(s.looking(gitLog))},
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.table() {
		mux.HandleFunc(r.pattern, r.serve)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.answers.refuse(w, &wire.Error{Code: wire.CodeNotFound, Message: "no such route"})
	})
	return mux
}
