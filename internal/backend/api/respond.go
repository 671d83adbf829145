package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"go.uber.org/zap"

	"github.com/kandev/recovery/userapi"
)

// maxBody bounds a request's body. A prompt's text grows on its way to the
// agent, whose limit is larger.
const maxBody = 1 << 20

func (s *Server) answer(w http.ResponseWriter, r *http.Request, status int, body any) {
	content, err := json.Marshal(body)
	if err != nil {
		s.refuse(w, r, fmt.Errorf("encode answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(append(content, '\n')); err != nil {
		s.cfg.Logger.Debug("an answer did not reach its reader", zap.String("route", r.Pattern), zap.Error(err))
	}
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal := s.refusal(r, err)
	s.refuseWith(w, r, statusOf(refusal.Code), refusal)
}

func (s *Server) refuseWith(w http.ResponseWriter, r *http.Request, status int, refusal *userapi.Error) {
	s.answer(w, r, status, userapi.ErrorBody{Error: refusal})
}

func statusOf(code userapi.Code) int {
	switch code {
	case userapi.CodeBadRequest:
		return http.StatusBadRequest
	case userapi.CodeUnauthenticated:
		return http.StatusUnauthorized
	case userapi.CodeForeignOrigin, userapi.CodeOutsideWorkspace, userapi.CodeDenied:
		return http.StatusForbidden
	case userapi.CodeNotFound:
		return http.StatusNotFound
	case userapi.CodeConflict, userapi.CodeUnstopped, userapi.CodeAlreadyResuming, userapi.CodeNoAgent:
		return http.StatusConflict
	case userapi.CodeInvalid, userapi.CodePlatformUnsupported:
		return http.StatusUnprocessableEntity
	case userapi.CodeRecovering, userapi.CodeUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// decode reads one JSON value of at most maxBody bytes.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	return decodeWithin(w, r, maxBody, into)
}

// decodeWithin reads one JSON value and refuses fields that it does not know, so
// that a misspelt one is not silently without effect.
func decodeWithin(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	body.DisallowUnknownFields()
	err := body.Decode(into)
	if err == nil {
		if _, err = body.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("more follows the JSON value")
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		err = fmt.Errorf("the body is over %d bytes", tooLarge.Limit)
	}
	return &userapi.Error{
		Code: userapi.CodeBadRequest, Message: "the request's body cannot be used: " + err.Error(),
		Remedy: "send one JSON object with the fields of this route",
	}
}

func invalid(message, remedy string) *userapi.Error {
	return &userapi.Error{Code: userapi.CodeInvalid, Message: message, Remedy: remedy}
}

func unavailable(message string) *userapi.Error {
	return &userapi.Error{Code: userapi.CodeUnavailable, Message: message, Remedy: "try again", Retryable: true}
}
