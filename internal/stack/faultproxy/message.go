//go:build unix

package faultproxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
)

// message is one message of Postgres's wire protocol, as it came.
type message []byte

// readMessage reads one. What a client sends first, and an order to cancel, has
// no type before its length.
func readMessage(from io.Reader, typed bool) (message, error) {
	head := make([]byte, 5)
	if !typed {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[len(head)-4:])
	if length < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	whole := append(make(message, 0, len(head)+int(length)-4), head...)[:len(head)+int(length)-4]
	_, err := io.ReadFull(from, whole[len(head):])
	return whole, err
}

// statement is the text that a client's message has the server parse, with the
// name that the server is to remember it by.
func (m message) statement() (name, text string, ok bool) {
	body := m[min(5, len(m)):]
	switch m[0] {
	case 'Q':
		return "", cString(body), true
	case 'P':
		name := cString(body)
		return name, cString(body[len(name)+1:]), true
	default:
		return "", "", false
	}
}

// executes reports whether a client's message has the server carry out a
// statement, rather than just read or describe it.
func (m message) executes() bool { return m[0] == 'Q' || m[0] == 'E' }

// endsRequest reports whether a client's message ends what it asks for at once,
// which the server then commits if no transaction was begun.
func (m message) endsRequest() bool { return m[0] == 'Q' || m[0] == 'S' }

// ready is what a server's message says that it is ready for: 'I' if it is in no
// transaction. It is 0 if the message says something else.
func (m message) ready() byte {
	if m[0] != 'Z' {
		return 0
	}
	return m[len(m)-1]
}

// failed reports whether a server's message is an error.
func (m message) failed() bool { return m[0] == 'E' }

// saysCommitted reports whether a server's message is the success of a COMMIT.
func (m message) saysCommitted() bool { return m[0] == 'C' && cString(m[5:]) == "COMMIT" }

// is reports whether a statement is the one word, as in COMMIT.
func is(statement, word string) bool {
	return strings.EqualFold(strings.TrimRight(strings.TrimSpace(statement), ";"), word)
}

func cString(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}
