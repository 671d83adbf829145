package fakeagent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	acp "github.com/coder/acp-go-sdk"
)

// Points at which a process can be told to exit.
const (
	ExitBeforeInitialize = "before-initialize" // at the start, before anything is read
	ExitAtInitialize     = "at-initialize"     // instead of answering initialize
	ExitDuringNew        = "during-new"        // instead of answering session/new
	ExitDuringLoad       = "during-load"       // half-way through a replay
)

var exitPoints = []string{ExitBeforeInitialize, ExitAtInitialize, ExitDuringNew, ExitDuringLoad}

// options say how a process behaves from its start.
type options struct {
	state      string // directory of the histories
	log        string // call log; empty: none
	load       bool   // advertises session/load
	resume     bool   // advertises session/resume
	exitAt     string // one of the points above; empty: none
	exitCode   int
	ignoreTerm bool // SIGTERM does nothing
	ignoreEOF  bool // goes on when standard input has ended
}

// run is the agent's life on its standard streams. It returns when standard
// input has ended.
func run(opts options, in io.Reader, out io.Writer) (err error) {
	if opts.exitAt != "" && !slices.Contains(exitPoints, opts.exitAt) {
		return fmt.Errorf("unknown exit point %q", opts.exitAt)
	}
	if opts.ignoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	if err := os.MkdirAll(opts.state, 0o700); err != nil {
		return fmt.Errorf("create state directory: %w", err)
	}
	calls, err := openCalls(opts.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, calls.close()) }()
	if err := calls.append(Call{Method: MethodStart}); err != nil {
		return fmt.Errorf("record the start: %w", err)
	}
	agent := &agent{
		opts: opts, calls: calls, out: &output{w: out},
		sessions: make(map[string]*opened), turns: make(map[string]*scope),
	}
	agent.exitAt(ExitBeforeInitialize)
	return agent.serve(in)
}

func openCalls(path string) (*callLog, error) {
	if path == "" {
		return nil, nil
	}
	return openCallLog(path)
}

// serve passes standard input on to the SDK, line by line, recording each call
// before the SDK sees it.
func (a *agent) serve(in io.Reader) error {
	read, write := io.Pipe()
	ready := make(chan struct{})
	fed := make(chan error, 1)
	go func() {
		<-ready
		err := a.feed(in, write)
		fed <- errors.Join(err, write.Close())
	}()
	a.conn = acp.NewAgentSideConnection(a, a.out, read)
	// The SDK's own diagnostics would carry raw lines.
	a.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(ready)
	err := <-fed
	<-a.conn.Done()
	if a.opts.ignoreEOF {
		awaitTerm()
	}
	return err
}

func (a *agent) feed(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if call, ok := callOf(line); ok {
				if err := a.calls.append(call); err != nil {
					return fmt.Errorf("record a call: %w", err)
				}
				a.received(call)
			}
			if _, err := out.Write(line); err != nil {
				return fmt.Errorf("pass a line on: %w", err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
	}
}

// awaitTerm blocks until the process is asked to end; while SIGTERM is ignored
// that is never.
func awaitTerm() {
	term := make(chan os.Signal, 1)
	if signal.Ignored(syscall.SIGTERM) {
		signal.Notify(term, os.Interrupt)
	} else {
		signal.Notify(term, os.Interrupt, syscall.SIGTERM)
	}
	defer signal.Stop(term)
	<-term
}
