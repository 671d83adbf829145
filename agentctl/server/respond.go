package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// Bounds of the time that a request body and an answer may take on their way.
const (
	bodyTimeout   = 30 * time.Second
	answerTimeout = 30 * time.Second
)

// maxSmallBody bounds, in bytes, the bodies of all routes but those that carry a
// user's content, so that strangers cannot make the server hold much.
const maxSmallBody = 64 << 10

// readBody reads a whole body of at most limit bytes, so that a slow sender
// holds up nobody but itself.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &wire.Error{Code: wire.CodeTooLarge, Message: "the request body is too large"}
	case err != nil:
		return nil, badRequest("the request body could not be read")
	}
	return body, control.SetReadDeadline(time.Time{})
}

// decode reads a JSON object. Fields that it does not know are a newer client's
// and are passed over; null, which the decoder would take for an empty object,
// is nobody's request.
func decode[T any](body []byte) (T, error) {
	var value *T
	if err := json.Unmarshal(body, &value); err != nil || value == nil {
		return *new(T), badRequest("the request body is not the JSON object expected")
	}
	return *value, nil
}

func badRequest(message string) error {
	return &wire.Error{Code: wire.CodeBadRequest, Message: message}
}

// answers writes answers. What goes wrong while one is written means that the
// client went away; the request has had its effect by then.
type answers struct{ logger *zap.Logger }

// ok answers 200 with a value.
func (a answers) ok(w http.ResponseWriter, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		a.refuse(w, err)
		return
	}
	a.write(w, http.StatusOK, raw)
}

// refuse writes the refusal; whatever is not a *wire.Error is told as internal,
// without its text.
func (a answers) refuse(w http.ResponseWriter, err error) {
	var refusal *wire.Error
	if !errors.As(err, &refusal) {
		refusal = &wire.Error{Code: wire.CodeInternal, Message: "internal error"}
	}
	raw, err := json.Marshal(wire.ErrorBody{Error: refusal})
	if err != nil {
		a.logger.Error("refusal not encoded", zap.Error(err))
	}
	a.write(w, refusal.Code.Status(), raw)
}

func (a answers) write(w http.ResponseWriter, status int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		a.logger.Debug("answer not bounded", zap.Error(err))
	}
	w.WriteHeader(status)
	if _, err := w.Write(raw); err != nil {
		a.logger.Debug("answer not delivered", zap.Error(err))
	}
}
