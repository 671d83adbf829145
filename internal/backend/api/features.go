package api

import (
	"net/http"

	"github.com/kandev/recovery/userapi"
)

func (s *Server) getSurvival(w http.ResponseWriter, r *http.Request) error {
	setting, err := s.cfg.Survival.Setting()
	if err != nil {
		return err
	}
	s.answer(w, r, http.StatusOK, setting)
	return nil
}

func (s *Server) setSurvival(w http.ResponseWriter, r *http.Request) error {
	var wanted userapi.SetSurvival
	if err := decode(w, r, &wanted); err != nil {
		return err
	}
	if wanted.On == nil {
		return invalid("the request does not say whether to turn it on", "give on, true or false")
	}
	setting, err := s.cfg.Survival.Set(*wanted.On)
	if err != nil {
		return err
	}
	s.answer(w, r, http.StatusOK, setting)
	return nil
}
