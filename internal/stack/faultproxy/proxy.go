//go:build unix

package faultproxy

import (
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Statement is one that a client had the server parse; Name is empty unless the
// server was told to remember it.
type Statement struct{ Name, Text string }

// Proxy passes connections on to a Postgres server on a Unix socket. It is safe
// for concurrent use.
type Proxy struct {
	dsn      string
	target   string
	listener net.Listener
	all      sync.WaitGroup

	mu         sync.Mutex
	plan       func() Fault
	open       map[*link]struct{}
	stopped    bool
	made       map[Kind]int
	statements []Statement
}

// Start starts a proxy to the server that the connection string names. It goes
// with the test.
func Start(t testing.TB, dsn string) *Proxy {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	query := u.Query()
	socket := ".s.PGSQL." + query.Get("port")
	dir, err := os.MkdirTemp("/tmp", "kandev-proxy-") // a socket's path has to be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	p := &Proxy{target: filepath.Join(query.Get("host"), socket), open: map[*link]struct{}{}, made: map[Kind]int{}}
	p.listener, err = net.Listen("unix", filepath.Join(dir, socket))
	require.NoError(t, err)
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	p.dsn = u.String()
	p.all.Go(p.accept)
	t.Cleanup(p.Stop)
	return p
}

// DSN is the connection string through the proxy.
func (p *Proxy) DSN() string { return p.dsn }

// Use cuts every open connection, and has each later one meet the fault that the
// plan draws for it; without a plan they meet none. The plan is called by one
// connection at a time.
func (p *Proxy) Use(plan func() Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
	for l := range p.open {
		l.cut()
	}
}

// Made counts the faults that took place.
func (p *Proxy) Made() map[Kind]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.made)
}

// Statements are all that went to the server.
func (p *Proxy) Statements() []Statement {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Statement(nil), p.statements...)
}

// Stop cuts everything and refuses what comes. It may be repeated.
func (p *Proxy) Stop() {
	p.listener.Close()
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.Use(nil)
	p.all.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.target)
		if err != nil {
			client.Close() // as if the server itself had refused
			continue
		}
		p.carry(&link{proxy: p, client: client, server: server})
	}
}

// carry passes on what either side says, until one of them ends.
func (p *Proxy) carry(l *link) {
	p.mu.Lock()
	if p.plan != nil {
		l.fault = p.plan()
	}
	if p.stopped {
		l.cut()
	}
	p.open[l] = struct{}{}
	p.mu.Unlock()
	var ways sync.WaitGroup
	for _, way := range []func(){l.toServer, l.toClient} {
		ways.Go(func() {
			way()
			l.cut()
		})
	}
	p.all.Go(func() {
		ways.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, l)
	})
}

func (p *Proxy) note(name, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.statements = append(p.statements, Statement{Name: name, Text: text})
}

func (p *Proxy) count(kind Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[kind]++
}
