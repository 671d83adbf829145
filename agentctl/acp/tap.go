package acp

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

const (
	methodCancelRequest = "$/cancel_request"
	codeInvalidRequest  = -32600 // JSON-RPC
)

// noiseInterval is the least time between two events about noise that no other
// event makes necessary.
const noiseInterval = time.Second

// tap reads the agent's output and decides, line by line, what is recorded and
// what the SDK gets. One goroutine runs it.
type tap struct {
	lines   *lineReader
	toSDK   *io.PipeWriter
	talk    *conversation
	stdin   *stdinQueue
	journal *journal
	hooks   Hooks
	logger  *zap.Logger
	clock   func() time.Time

	noise   int // bytes not yet reported
	noiseAt time.Time

	watches sync.WaitGroup // permission requests that may meet a stalled reader
}

func (t *tap) run() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		t.journal.run(stop)
	}()
	t.read()
	t.toSDK.CloseWithError(io.EOF)
	t.finish()
	t.watches.Wait()
	close(stop)
	<-stopped
}

func (t *tap) read() {
	for {
		l, err := t.lines.next()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
				t.logger.Warn("agent_output_failed", zap.Error(err))
			}
			return
		}
		if l.oversized != nil {
			t.oversized(l)
			continue
		}
		messages, noise := split(l.data)
		t.noise += noise
		for _, m := range messages {
			t.handle(m)
		}
	}
}

func (t *tap) handle(m received) {
	switch {
	case m.Method == "":
		t.response(m)
	case m.ID != nil && m.Method == sdk.ClientMethodSessionRequestPermission:
		t.askPermission(m)
	case m.ID != nil:
		// This client offers no files and no terminals.
		t.refuse(m.ID, sdk.NewMethodNotFound(m.Method))
	case m.Method == sdk.ClientMethodSessionUpdate && m.Params != nil:
		t.update(newUpdate(m.Params))
	case m.Method == methodCancelRequest:
		t.withdraw(m.Params)
	default:
		// The SDK's queue of notifications must stay empty: it ends the
		// connection when it overflows.
		t.logger.Debug("agent_notification_ignored", zap.Int("bytes", len(m.raw)))
	}
}

// newUpdate keeps the params' bytes as they are.
func newUpdate(params json.RawMessage) entry {
	return entry{kind: wire.EventUpdate, payload: clean(params)}
}

// update records what the agent says, unless it is history (B-18).
func (t *tap) update(e entry) {
	replaying, turnID := t.talk.moment()
	if replaying {
		return
	}
	e.turnID = turnID
	t.record(e)
}

func (t *tap) askPermission(m received) {
	options, ok := optionIDs(m.Params)
	if !ok {
		t.refuse(m.ID, sdk.NewInvalidParams(nil))
		return
	}
	p, moot := t.talk.ask(m.ID, options)
	announcement := newEntry(wire.EventPermissionRequest, p.turnID, wire.PermissionRequested{
		RequestID: p.id, Params: clean(m.Params),
	})
	if moot {
		t.record(announcement)
		t.talk.settleOne(p)
		return
	}
	appended := t.watch(p)
	if seq := t.record(announcement); seq != 0 {
		appended <- seq
	}
}

// watch cancels a request, as the user would, whose announcement meets a reader
// that takes nothing (S-001.9). It begins before the request is recorded: that
// may wait behind what the reader does not take. The caller gives the number
// once there is one, without waiting.
func (t *tap) watch(p *permission) (appended chan<- int64) {
	number := make(chan int64, 1)
	t.watches.Go(func() {
		if t.journal.recorder.Stalled(p.open, number) {
			t.logger.Warn("permission_request_cancelled", zap.String("reason", "reader stalled"))
			t.talk.settleOne(p)
		}
	})
	return number
}

func (t *tap) withdraw(params json.RawMessage) {
	var request struct {
		ID json.RawMessage `json:"requestId"`
	}
	if err := json.Unmarshal(params, &request); err == nil && request.ID != nil {
		t.talk.withdraw(request.ID)
	}
}

func (t *tap) response(m received) {
	if open := t.talk.answered(m.ID); open != nil {
		stopReason, failure := promptResult(m.message)
		t.endTurn(open, stopReason, failure)
		return
	}
	t.talk.responded(m.ID)
	t.forward(m.raw)
}

// promptResult returns the stop reason, or why there is none.
func promptResult(m message) (stopReason, failure string) {
	if m.Error != nil {
		var e struct {
			Code int `json:"code"`
		}
		if json.Unmarshal(m.Error, &e) != nil {
			return "", ErrorMalformed
		}
		return "", ErrorAgentPrefix + strconv.Itoa(e.Code)
	}
	var result sdk.PromptResponse
	if json.Unmarshal(m.Result, &result) != nil || result.StopReason == "" {
		return "", ErrorMalformed
	}
	return string(result.StopReason), ""
}

// endTurn records the end in the line's order, then lets the next turn begin.
func (t *tap) endTurn(open *turn, stopReason, failure string) {
	t.talk.settleTurn(open)
	outcome := wire.TurnOutcome{
		TurnID: open.id, Key: open.key, StopReason: stopReason, Error: failure, EndedAt: t.clock(),
	}
	t.flushNoise()
	t.journal.record(newEntry(wire.EventTurnEnded, open.id, outcome))
	t.talk.leave()
	t.hooks.TurnEnded(outcome)
}

// oversized deals with a frame that was too long to keep (B-8): a request is
// refused, a response fails its call, an update leaves a mark.
func (t *tap) oversized(l line) {
	method, id := l.oversized.method, l.oversized.id
	t.logger.Warn("agent_frame_oversized", zap.Int64("bytes", l.size))
	switch {
	case method != "" && id != nil:
		t.refuse(id, &sdk.RequestError{Code: codeInvalidRequest, Message: "request too large"})
		if method == sdk.ClientMethodSessionRequestPermission {
			t.update(newEntry(wire.EventTruncated, "", wire.Truncated{Kind: wire.EventPermissionRequest, Bytes: l.size}))
		}
	case method == sdk.ClientMethodSessionUpdate:
		t.update(newEntry(wire.EventTruncated, "", wire.Truncated{Kind: wire.EventUpdate, Bytes: l.size}))
	case method == "" && id != nil:
		t.oversizedResponse(id)
	default:
		t.noise += int(l.size)
	}
}

func (t *tap) oversizedResponse(id json.RawMessage) {
	if open := t.talk.answered(id); open != nil {
		t.endTurn(open, "", ErrorOversized)
		return
	}
	t.talk.responded(id)
	if line, ok := t.encodeError(id, sdk.NewInternalError("response too large")); ok {
		t.forward(line)
	}
}

func (t *tap) refuse(id json.RawMessage, reason *sdk.RequestError) {
	line, ok := t.encodeError(id, reason)
	if !ok {
		return
	}
	if err := t.stdin.push(line, nil); err != nil {
		t.logger.Warn("agent_request_not_answered", zap.Error(err))
	}
}

func (t *tap) encodeError(id json.RawMessage, reason *sdk.RequestError) ([]byte, bool) {
	line, err := encode(frame{ID: id, Error: reason})
	if err != nil {
		t.logger.Warn("agent_request_not_answered", zap.Error(err))
	}
	return line, err == nil
}

// forward gives the SDK one line. The SDK reads until the pipe is closed, so
// this does not wait for anybody's answer. Once the conversation is open it is
// closed, and what comes answers no call.
func (t *tap) forward(raw []byte) {
	line := append(append(make([]byte, 0, len(raw)+1), raw...), '\n')
	if _, err := t.toSDK.Write(line); err != nil {
		t.logger.Debug("agent_answer_to_nobody", zap.Error(err))
	}
}

func (t *tap) record(e entry) (seq int64) {
	if t.clock().Sub(t.noiseAt) >= noiseInterval {
		t.flushNoise()
	}
	return t.journal.record(e)
}

// flushNoise reports the noise since the last report as one event.
func (t *tap) flushNoise() {
	if t.noise == 0 {
		return
	}
	_, turnID := t.talk.moment()
	t.journal.record(newEntry(wire.EventNoise, turnID, wire.Noise{Bytes: t.noise}))
	t.noise, t.noiseAt = 0, t.clock()
}

// finish ends what the agent has left open.
func (t *tap) finish() {
	open := t.talk.end()
	if open != nil {
		t.endTurn(open, "", ErrorAgentExited)
		return
	}
	t.flushNoise()
	t.journal.record()
}
