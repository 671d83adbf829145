package fakeagent

import (
	"bytes"
	"io"
	"sync"
)

// output is the agent's standard output. What is written at once, a frame or
// noise, stays together; a script decides how it looks on its way.
type output struct {
	mu    sync.Mutex
	w     io.Writer
	piece int  // most bytes that go out in one write; 0: no limit
	crlf  bool // lines end as they do on Windows
}

// Write writes p as the script wants it, and counts the bytes of p.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	rest := p
	if line, ended := bytes.CutSuffix(p, []byte("\n")); ended && o.crlf {
		rest = append(bytes.Clone(line), "\r\n"...)
	}
	for len(rest) > 0 {
		size := len(rest)
		if o.piece > 0 {
			size = min(size, o.piece)
		}
		if _, err := o.w.Write(rest[:size]); err != nil {
			return 0, err
		}
		rest = rest[size:]
	}
	return len(p), nil
}

// splitInto has everything from now on go out in writes of at most n bytes.
func (o *output) splitInto(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.piece = n
}

// endInCRLF has every line from now on end in CR LF.
func (o *output) endInCRLF() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.crlf = true
}
