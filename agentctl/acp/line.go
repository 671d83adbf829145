package acp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	readBuffer = 64 << 10
	keptBuffer = 256 << 10 // a larger line buffer is not kept for the next line
)

// line is one line of the agent's output, without its end.
type line struct {
	data []byte // valid until the next call; nil if the line is oversized
	size int64  // bytes read; those of an oversized line include its end
	// oversized tells what an oversized line was; nil otherwise.
	oversized *header
}

// lineReader reads lines of any length in bounded memory.
type lineReader struct {
	src *bufio.Reader
	max int
	buf []byte
}

func newLineReader(src io.Reader, limit int) *lineReader {
	return &lineReader{src: bufio.NewReaderSize(src, readBuffer), max: limit}
}

// next returns the next line; the last one may lack its end. An error says that
// there is none.
func (r *lineReader) next() (line, error) {
	if cap(r.buf) > keptBuffer {
		r.buf = nil
	}
	r.buf = r.buf[:0]
	var l line
	for {
		chunk, err := r.src.ReadSlice('\n')
		r.add(&l, chunk)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && l.size == 0:
			return line{}, err
		}
		if l.oversized == nil {
			l.data = bytes.TrimSpace(r.buf)
			l.size = int64(len(l.data))
		}
		return l, nil
	}
}

func (r *lineReader) add(l *line, chunk []byte) {
	l.size += int64(len(chunk))
	if l.oversized == nil && len(r.buf)+len(chunk) <= r.max {
		r.buf = append(r.buf, chunk...)
		return
	}
	if l.oversized == nil {
		l.oversized = &header{}
		l.oversized.feed(fromFrame(r.buf))
		r.buf = nil
	}
	l.oversized.feed(chunk)
}

// fromFrame cuts what is glued before a frame.
func fromFrame(b []byte) []byte {
	if i := nextCandidate(b); i > 0 {
		return b[i:]
	}
	return b
}
