package api

import (
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

// name is what users may choose as an id: of a profile, a task or a prompt.
var name = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

func checkName(what, value string) error {
	if name.MatchString(value) {
		return nil
	}
	return invalid(what+" is not a valid id", "use 1 to 128 letters, digits, dots, dashes, tildes and underscores")
}

func (s *Server) putProfile(w http.ResponseWriter, r *http.Request, svc *Services) error {
	var p userapi.Profile
	if err := decode(w, r, &p); err != nil {
		return err
	}
	id := r.PathValue("id")
	if p.ID == "" {
		p.ID = id
	}
	if p.ID != id {
		return invalid("the profile's id differs from the route's", "leave it out, or make them equal")
	}
	if err := checkProfile(p); err != nil {
		return err
	}
	err := svc.Store.PutProfile(r.Context(), svc.Installation, store.Profile{
		ID: p.ID, Agent: p.Agent, Command: p.Command, Env: p.Env,
	})
	if err != nil {
		return err
	}
	s.answer(w, r, http.StatusOK, p)
	return nil
}

func checkProfile(p userapi.Profile) error {
	if err := checkName("the profile's id", p.ID); err != nil {
		return err
	}
	if p.Agent != "" {
		if err := checkName("the agent", p.Agent); err != nil {
			return err
		}
	}
	if len(p.Command) == 0 || p.Command[0] == "" {
		return invalid("the profile has no command", "give the agent's program and its arguments")
	}
	for variable := range p.Env {
		if variable == "" || strings.ContainsAny(variable, "=\x00") {
			return invalid("an environment variable has no valid name", "use names without =")
		}
	}
	return nil
}

func (s *Server) getProfile(w http.ResponseWriter, r *http.Request, svc *Services) error {
	p, err := svc.Store.GetProfile(r.Context(), svc.Installation, r.PathValue("id"))
	if errors.Is(err, store.ErrNoProfile) {
		return &userapi.Error{Code: userapi.CodeNotFound, Message: "there is no such profile", Remedy: "create it"}
	}
	if err != nil {
		return err
	}
	s.answer(w, r, http.StatusOK, userapi.Profile{ID: p.ID, Agent: p.Agent, Command: p.Command, Env: p.Env})
	return nil
}
