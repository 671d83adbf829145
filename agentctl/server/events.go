package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/kandev/recovery/agentctl/instance"
	"github.com/kandev/recovery/agentctl/ownership"
	"github.com/kandev/recovery/agentctl/wire"
)

const (
	// frameTimeout is how long a client may take to receive one frame. One that
	// takes longer is detached, so that its instance counts as detached too.
	frameTimeout = 10 * time.Second
	// askAfter is how long a client has to acknowledge a frame before it is asked
	// whether it has taken it. Most commit sooner, and are never asked.
	askAfter = 250 * time.Millisecond
	// maxClientFrame bounds an acknowledgement.
	maxClientFrame = 4 << 10
)

// events serves one instance's stream (B-1). It is admitted like any request,
// and ends when its credential is superseded (O-002.2).
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if err := s.cfg.Authority.Check(bearer(r)); err != nil {
		s.refuse(w, r, err)
		return
	}
	after, err := cursor(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	admission, err := s.cfg.Authority.Admit(bearer(r), ownership.Stream)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	defer admission.Release()

	stream, err := s.cfg.Instances.Attach(r.PathValue("id"), after)
	var gap *instance.GapError
	if err != nil && !errors.As(err, &gap) {
		s.refuse(w, r, err)
		return
	}
	if gap != nil {
		admission.Release() // what follows has no effect
	} else {
		defer stream.Close()
		// From its revocation on nothing of this stream has an effect, whatever
		// its connection is stuck in. Rotation waits for just that.
		settle := context.AfterFunc(admission.Context(), func() {
			stream.Close()
			admission.Release()
		})
		defer settle()
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // Accept has answered
	}
	conn.SetReadLimit(maxClientFrame)
	if gap != nil {
		frame := wire.ServerFrame{Type: wire.FrameGap, First: gap.First, Next: gap.Next}
		s.closeStream(conn, errors.Join(gap, send(r.Context(), conn, frame)))
		return
	}
	session := newEventSession(conn, stream)
	err = session.run(r.Context())
	if admission.Context().Err() != nil {
		err = errRevoked
	}
	s.closeStream(conn, err)
	session.receiver.Wait()
}

func cursor(r *http.Request) (int64, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return 0, badRequest("events are served over a WebSocket")
	}
	after, err := strconv.ParseInt(r.URL.Query().Get(wire.QueryEventsAfter), 10, 64)
	if err != nil || after < 0 {
		return 0, badRequest("after is not an event number")
	}
	return after, nil
}
