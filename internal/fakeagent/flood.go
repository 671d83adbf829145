package fakeagent

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// flood sends updates at the least cost, for measurements: the frame is encoded
// once, each update is one write, and the history holds none of them. An
// update's text is "<turn> <n> <Unix time in ns at the write>" and a filler.
type flood struct {
	count int
	size  int           // of the update's params, in bytes
	every time.Duration // between the beginnings of two updates; 0: none
	after time.Duration // before the first
}

// minFlood holds the longest frame without a filler.
const minFlood = 200

func parseFlood(args []string) (step, error) {
	f := flood{size: minFlood}
	var err error
	if len(args) == 0 {
		return nil, fmt.Errorf("takes a count")
	}
	if f.count, err = strconv.Atoi(args[0]); err != nil || f.count <= 0 {
		return nil, fmt.Errorf("%q is no count", args[0])
	}
	for args = args[1:]; len(args) >= 2; args = args[2:] {
		switch args[0] {
		case "size":
			f.size, err = parseSize(args[1])
		case "every":
			f.every, err = time.ParseDuration(args[1])
		case "after":
			f.after, err = time.ParseDuration(args[1])
		default:
			err = fmt.Errorf("unknown word %q", args[0])
		}
		if err != nil {
			return nil, err
		}
	}
	if len(args) > 0 || f.size < minFlood {
		return nil, fmt.Errorf("takes \"COUNT [size N] [every D] [after D]\", a size of %d at least", minFlood)
	}
	return f, nil
}

func (f flood) run(ctx context.Context, t *turn) error {
	before, after := floodFrame(t.session.id)
	text := filler(f.size)
	first := t.session.number(f.count)
	began := time.Now().Add(f.after)
	var line bytes.Buffer
	for i := range f.count {
		if err := pause(ctx, time.Until(began.Add(time.Duration(i)*f.every))); err != nil {
			return err
		}
		line.Reset()
		line.WriteString(before)
		head := line.Len()
		fmt.Fprintf(&line, "%d %d %d ", t.number, first+i, time.Now().UnixNano())
		params := len(before) - floodMethod + line.Len() - head + len(after) - 2
		line.WriteString(text[:f.size-params])
		line.WriteString(after)
		if _, err := t.agent.out.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// floodMethod is the length of a frame up to its params.
const floodMethod = len(`{"jsonrpc":"2.0","method":"` + acp.ClientMethodSessionUpdate + `","params":`)

// floodFrame is what comes before and after an update's text.
func floodFrame(session string) (before, after string) {
	before = `{"jsonrpc":"2.0","method":"` + acp.ClientMethodSessionUpdate + `","params":{"sessionId":"` + session +
		`","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`
	return before, `"}}}}` + "\n"
}

// filler is text that does not compress much, as a database would otherwise
// store less than an agent says.
func filler(size int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ."
	var b strings.Builder
	b.Grow(size)
	state := uint32(1)
	for range size {
		state = state*1664525 + 1013904223
		b.WriteByte(letters[state>>26])
	}
	return b.String()
}
