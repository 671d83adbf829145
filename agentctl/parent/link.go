package parent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kandev/recovery/agentctl/wire"
)

// maxLineBytes bounds a line from the parent.
const maxLineBytes = 64 << 10

var (
	// ErrUnrecorded: the parent let go before it had recorded this server
	// (B-26).
	ErrUnrecorded = errors.New("the launching process let go before recording this server")
	// ErrEnded: the parent of a bound server let go, or ended (S-005.1).
	ErrEnded = errors.New("the launching process ended")
	// ErrLine: the parent wrote something else than is expected.
	ErrLine = errors.New("unexpected line from the launching process")
)

// Link is the pair of pipes to the parent. Its methods are called in the order
// Config, Ready, Follow.
type Link struct {
	stdin *os.File
	lines *bufio.Reader
	ready *os.File
}

// Open returns the link over the process's standard input and ready pipe.
func Open(stdin, ready *os.File) *Link {
	return &Link{stdin: stdin, lines: bufio.NewReaderSize(stdin, maxLineBytes), ready: ready}
}

// Config reads the first line. Its values are not judged: Validate does.
func (l *Link) Config() (wire.StartConfig, error) {
	var config wire.StartConfig
	line, err := l.line()
	if err != nil {
		return config, fmt.Errorf("read start configuration: %w", err)
	}
	if err := json.Unmarshal(line, &config); err != nil {
		return config, fmt.Errorf("%w: start configuration", ErrLine)
	}
	return config, nil
}

// Ready reports to the parent, once, and closes the ready pipe.
func (l *Link) Ready(ready wire.Ready) error {
	line, err := json.Marshal(ready)
	if err != nil {
		return errors.Join(fmt.Errorf("encode ready line: %w", err), l.ready.Close())
	}
	_, err = l.ready.Write(append(line, '\n'))
	if err := errors.Join(err, l.ready.Close()); err != nil {
		return fmt.Errorf("report to the launching process: %w", err)
	}
	return nil
}

// Follow watches the parent. Of a detached server it returns nil once the parent
// has recorded it and nothing ties the two together any more. Otherwise it says
// why this server has to end: ErrUnrecorded, or for a bound one ErrEnded.
func (l *Link) Follow(detached bool) error {
	line, err := l.line()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnrecorded, err)
	case strings.TrimSpace(string(line)) != wire.RecordedLine:
		return fmt.Errorf("%w: %w", ErrUnrecorded, ErrLine)
	case detached:
		return l.letGo()
	}
	if _, err := io.Copy(io.Discard, l.lines); err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return ErrEnded
}

// letGo drops the standard input, the last tie to the parent. The descriptor
// stays taken, by the null device.
func (l *Link) letGo() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("open null device: %w", err)
	}
	if err := replace(l.stdin, null); err != nil {
		return fmt.Errorf("let go of the launching process: %w", err)
	}
	return nil
}

// line reads one whole line; one without an end is not a line.
func (l *Link) line() ([]byte, error) { return l.lines.ReadSlice('\n') }
