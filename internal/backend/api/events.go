package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

// readerTimeout is how long the reader of an event stream may take nothing. It
// costs nobody else anything: events are read from the database one page at a
// time, at the reader's own speed.
const readerTimeout = 2 * time.Minute

// events streams the session's committed events after a position, and goes on
// with what is committed later.
func (s *Server) events(w http.ResponseWriter, r *http.Request, svc *Services) error {
	position, err := after(r)
	if err != nil {
		return err
	}
	session, err := svc.Store.GetSession(r.Context(), svc.Installation, r.PathValue("id"))
	if err != nil {
		return err
	}
	wake, unsubscribe := svc.Changes.Subscribe(session.ID)
	defer unsubscribe()
	stream := sse{w: w, control: http.NewResponseController(w)}
	if err := stream.open(); err != nil {
		return s.lost(r, err)
	}
	heartbeat := time.NewTicker(s.cfg.Heartbeat)
	defer heartbeat.Stop()
	for {
		if position, err = s.deliver(r, svc, session.ID, position, stream); err != nil {
			return s.lost(r, err)
		}
		select {
		case <-wake:
		case <-heartbeat.C:
			if err := stream.comment(); err != nil {
				return s.lost(r, err)
			}
		case <-r.Context().Done():
			return nil
		case <-s.quit:
			return nil
		}
	}
}

// deliver sends everything that is committed after the position.
func (s *Server) deliver(r *http.Request, svc *Services, session string, position int64, stream sse) (int64, error) {
	for {
		events, err := svc.Store.EventsAfter(r.Context(), svc.Installation, session, position, page)
		if err != nil {
			return position, err
		}
		for _, e := range events {
			if err := stream.event(e); err != nil {
				return position, err
			}
			position = e.Position
		}
		if len(events) < page {
			return position, stream.control.Flush()
		}
		select {
		case <-s.quit:
			return position, stream.control.Flush()
		default:
		}
	}
}

// lost ends a stream that has begun: its status is sent already, and the reader
// goes on from its last position.
func (s *Server) lost(r *http.Request, err error) error {
	if r.Context().Err() == nil {
		s.cfg.Logger.Info("an event stream ended early", zap.String("session_id", r.PathValue("id")), zap.Error(err))
	}
	return nil
}

// after is the position from which the reader wants to go on; a browser's
// reconnect names it in a header.
func after(r *http.Request) (int64, error) {
	text := r.URL.Query().Get("after")
	if text == "" {
		text = r.Header.Get("Last-Event-ID")
	}
	if text == "" {
		return 0, nil
	}
	position, err := strconv.ParseInt(text, 10, 64)
	if err != nil || position < 0 {
		return 0, &userapi.Error{
			Code: userapi.CodeBadRequest, Message: "after is not a position",
			Remedy: "give the position of the last event that was seen, or 0",
		}
	}
	return position, nil
}

// sse writes server-sent events.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (e sse) open() error {
	header := e.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	e.w.WriteHeader(http.StatusOK)
	return e.control.Flush()
}

func (e sse) event(event store.Event) error {
	data, err := json.Marshal(userapi.Event{
		Position: event.Position, InstanceID: event.InstanceID, Seq: event.Seq, Kind: event.Kind,
		TurnID: event.TurnID, At: event.At, Payload: event.Payload,
	})
	if err != nil {
		return fmt.Errorf("encode event at position %d: %w", event.Position, err)
	}
	return e.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", event.Position, event.Kind, data))
}

func (e sse) comment() error {
	if err := e.write(": alive\n\n"); err != nil {
		return err
	}
	return e.control.Flush()
}

func (e sse) write(text string) error {
	if err := e.control.SetWriteDeadline(time.Now().Add(readerTimeout)); err != nil {
		return err
	}
	_, err := e.w.Write([]byte(text))
	return err
}
