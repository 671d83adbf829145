//go:build unix

package faultproxy

import (
	"io"
	"net"
	"sync"
)

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	fault          Fault

	mu      sync.Mutex
	asked   string // the client's newest statement
	does    bool   // its request carries out a statement
	begun   bool   // the server is in a transaction that somebody has to end
	commits int    // that the client has asked for
	commit  bool   // one of them is under way
}

func (l *link) cut() {
	l.client.Close()
	l.server.Close()
}

// toServer passes on what the client says. A connection that ends, cut or not,
// is something that both sides see by themselves.
func (l *link) toServer() {
	passed, typed := 0, false
	for {
		m, err := readMessage(l.client, typed)
		if err != nil {
			return
		}
		commits := typed && l.says(m)
		if commits && l.meets(BeforeCommit) {
			return
		}
		typed = true
		if !l.pass(ToServer, l.server, m, &passed) || commits && l.meets(AtCommit) {
			return
		}
	}
}

func (l *link) toClient() {
	passed := 0
	for {
		m, err := readMessage(l.server, true)
		if err != nil || l.committed(m) && l.meets(AfterCommit) {
			return
		}
		if !l.pass(ToClient, l.client, m, &passed) {
			return
		}
	}
}

// says takes notice of a client's message, and reports whether it is what the
// server commits upon: a COMMIT, or the end of a request outside of any
// transaction.
func (l *link) says(m message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name, text, ok := m.statement(); ok {
		l.proxy.note(name, text)
		l.asked = text
	}
	l.does = l.does || m.executes()
	if !m.endsRequest() {
		return false
	}
	l.commit = l.does && (is(l.asked, "commit") || !l.begun && !is(l.asked, "begin"))
	l.does = false
	if l.commit {
		l.commits++
	}
	return l.commit
}

// committed takes notice of a server's message, and reports whether it is the
// first that tells of a commit.
func (l *link) committed(m message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.failed() {
		l.commit = false
	}
	state := m.ready()
	if state != 0 {
		l.begun = state != 'I'
	}
	tells := l.commit && (m.saysCommitted() || state == 'I')
	if tells {
		l.commit = false
	}
	return tells
}

// meets reports whether the connection is to be cut at its newest commit.
func (l *link) meets(kind Kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.fault.atCommit(kind, l.commits) {
		return false
	}
	l.proxy.count(kind)
	return true
}

// pass writes a message, or the part of it that still gets through, and reports
// whether the connection goes on.
func (l *link) pass(way Kind, to io.Writer, m message, passed *int) bool {
	through, cut := l.fault.room(way, *passed, len(m))
	*passed += through
	if _, err := to.Write(m[:through]); err != nil {
		return false
	}
	if cut {
		l.proxy.count(way)
	}
	return !cut
}
