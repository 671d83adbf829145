// Package acp speaks the Agent Client Protocol with one agent over its standard
// input and output.
//
// A tap reads the agent's output line by line, ahead of the SDK: it records
// updates, permission requests and turn ends in the order of the lines, and a
// recorder that blocks stops the reading, so that the agent blocks in its own
// write (S-001.6, B-9). The SDK, which cannot push back, gets only answers to its
// calls, and ends once they have opened the conversation: its buffers are most of
// what an idle agent would cost. The agent's input has a queue and a
// writer of its own, so that neither a paused output nor an agent that does not
// read delays a cancellation or a stop.
package acp

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// DefaultMaxFrame is the length in bytes of the longest frame that is kept
// whole. It is below the 10 MiB at which the SDK gives up on a connection.
const DefaultMaxFrame = 8 << 20

// farewell is how long Close lets queued answers reach an agent that may not
// read any more.
const farewell = 100 * time.Millisecond

// Recorder keeps events in the order of its calls, for somebody who reads them.
type Recorder interface {
	// Append keeps an event and returns its number, which is above 0. It may
	// block; a done ctx ends the wait. After an error the event is lost, and
	// later ones are still offered.
	Append(ctx context.Context, kind wire.EventKind, turnID string, payload json.RawMessage) (int64, error)
	// Stalled waits until an event that is about to be appended has reached its
	// reader, and returns false; it returns true if there is a reader that takes
	// nothing for too long. The event's number comes over appended, if it is
	// ever appended. A done ctx ends the wait with false.
	Stalled(ctx context.Context, appended <-chan int64) bool
}

// Hooks are called by the goroutine that reads the agent's output. They must
// return soon and must not call Close.
type Hooks struct {
	// TurnEnded runs exactly once for every prompt that was accepted, after its
	// turn_ended event was recorded or could not be.
	TurnEnded func(wire.TurnOutcome)
}

// Config is what an Agent is made of; all but MaxFrame is required.
type Config struct {
	Stdin io.WriteCloser // closed by Close
	// Stdout must end, or be an io.Closer whose Close ends a pending Read.
	Stdout   io.Reader
	Recorder Recorder
	Hooks    Hooks
	Logger   *zap.Logger
	Clock    func() time.Time
	// MaxFrame bounds the memory for one frame in bytes; 0 and values above
	// DefaultMaxFrame mean DefaultMaxFrame.
	MaxFrame int
}

// Agent is the protocol side of one agent process. It is safe for concurrent
// use and must be closed.
type Agent struct {
	stdout io.Reader
	stdin  *stdinQueue
	talk   *conversation
	conn   *sdk.Connection
	toSDK  *io.PipeWriter     // its end is the SDK's
	cancel context.CancelFunc // frees a blocked recorder
	done   chan struct{}
	logger *zap.Logger

	closing sync.Once
}

// Open starts reading and writing. The caller owns the process and stderr.
func Open(cfg Config) *Agent {
	ctx, cancel := context.WithCancel(context.Background())
	stdin := newStdinQueue(cfg.Stdin, cfg.Logger)
	journal := newJournal(ctx, cfg.Recorder, cfg.Logger)
	talk := newConversation(stdin, journal)
	fromTap, toSDK := io.Pipe()
	conn := sdk.NewConnection(nil, outgoing{stdin: stdin, talk: talk}, fromTap)
	// The SDK's own records quote raw lines (B-9).
	conn.SetLogger(slog.New(slog.DiscardHandler))
	a := &Agent{
		stdout: cfg.Stdout, stdin: stdin, talk: talk, conn: conn, toSDK: toSDK,
		cancel: cancel, done: make(chan struct{}), logger: cfg.Logger,
	}
	t := &tap{
		lines: newLineReader(cfg.Stdout, maxFrame(cfg.MaxFrame)), toSDK: toSDK, talk: talk, stdin: stdin,
		journal: journal, hooks: cfg.Hooks, logger: cfg.Logger, clock: cfg.Clock,
	}
	go stdin.run()
	go func() {
		defer close(a.done)
		defer cancel()
		t.run()
	}()
	return a
}

func maxFrame(n int) int {
	if n <= 0 || n > DefaultMaxFrame {
		return DefaultMaxFrame
	}
	return n
}

// Done is closed when the agent's output has ended, what it said is recorded,
// and an open turn has been ended.
func (a *Agent) Done() <-chan struct{} { return a.done }

// Close settles outstanding permission requests as cancelled, frees a paused
// reader and a stuck writer, closes both pipes and waits for the end. A turn
// still open ends with ErrorAgentExited. Closing again waits as well.
func (a *Agent) Close() {
	a.closing.Do(func() {
		a.talk.end()
		a.stdin.finish(farewell)
		a.cancel()
		a.closeOutput()
	})
	<-a.done
	<-a.stdin.done
}

func (a *Agent) closeOutput() {
	c, ok := a.stdout.(io.Closer)
	if !ok {
		return
	}
	if err := c.Close(); err != nil {
		a.logger.Debug("agent_output_close_failed", zap.Error(err))
	}
}
