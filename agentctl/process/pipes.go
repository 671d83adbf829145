package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// drainIdle is how long a read waits for more output of a process that has
// ended, in case a descendant holds the pipe.
const drainIdle = 500 * time.Millisecond

// pipes are both ends of a child's standard streams. The parent's ends belong
// to this package rather than to exec.Cmd, whose Wait would wait for them.
type pipes struct {
	in, out, err                *os.File // parent's ends
	childIn, childOut, childErr *os.File
}

func openPipes() (*pipes, error) {
	p := &pipes{}
	var errIn, errOut, errErr error
	p.childIn, p.in, errIn = os.Pipe()
	p.out, p.childOut, errOut = os.Pipe()
	p.err, p.childErr, errErr = os.Pipe()
	if err := errors.Join(errIn, errOut, errErr); err != nil {
		p.closeChild()
		p.closeParent()
		return nil, fmt.Errorf("open pipes: %w", err)
	}
	return p, nil
}

func (p *pipes) closeChild()  { closeFiles(p.childIn, p.childOut, p.childErr) }
func (p *pipes) closeParent() { closeFiles(p.in, p.out, p.err) }

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// inputPipe can be closed by its writer and by a stop, in either order.
type inputPipe struct {
	file *os.File
	once sync.Once
	err  error
}

func (p *inputPipe) Write(b []byte) (int, error) { return p.file.Write(b) }

func (p *inputPipe) Close() error {
	p.end()
	return p.err
}

func (p *inputPipe) end() { p.once.Do(func() { p.err = p.file.Close() }) }

// outputPipe ends when the pipe does, and also when the process has ended and
// nothing came for drainIdle. A reader that pauses between reads loses nothing:
// the wait counts per read, not from the process's end.
type outputPipe struct {
	file *os.File

	mu    sync.Mutex
	ended bool
}

func (p *outputPipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	if p.ended {
		p.limitRead()
	}
	p.mu.Unlock()
	n, err := p.file.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		return n, io.EOF
	}
	return n, err
}

// processEnded bounds the read in progress and those to come.
func (p *outputPipe) processEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.limitRead()
}

// limitRead closes the pipe where reads cannot be given a deadline: there, its
// reader could wait for a descendant for ever.
func (p *outputPipe) limitRead() {
	if err := p.file.SetReadDeadline(time.Now().Add(drainIdle)); err != nil {
		p.file.Close()
	}
}

// Close ends the read in progress.
func (p *outputPipe) Close() error { return p.file.Close() }
