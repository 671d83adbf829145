package integration

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// peer is a server of a test that a record is made to name. It keeps every byte
// that it was sent, by connection, decrypted where it speaks TLS.
type peer struct {
	net.Listener
	fingerprint string // of its certificate; empty if it speaks no TLS
	named       string // what the record calls it, if that is not its address
	mu          sync.Mutex
	heard       []*bytes.Buffer
}

// listen opens a peer at the address that speaks no TLS by itself.
func listen(t *testing.T, address string) *peer {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	return &peer{Listener: listener}
}

// listenTLS opens a peer with a certificate of its own.
func listenTLS(t *testing.T) *peer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	require.NoError(t, err)
	p := listen(t, "127.0.0.1:0")
	p.Listener = tls.NewListener(p.Listener, &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}},
	})
	p.fingerprint = credential.Fingerprint(der)
	return p
}

// endpoint is what the record names.
func (p *peer) endpoint() string {
	if p.named != "" {
		return p.named
	}
	return p.Addr().String()
}

func (p *peer) port(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(p.endpoint())
	require.NoError(t, err)
	return port
}

// Accept begins a transcript for the connection.
func (p *peer) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	transcript := &bytes.Buffer{}
	p.heard = append(p.heard, transcript)
	return &heardConn{Conn: conn, peer: p, transcript: transcript}, nil
}

// transcripts are what was heard on each connection that said anything.
func (p *peer) transcripts() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	var said [][]byte
	for _, transcript := range p.heard {
		if transcript.Len() > 0 {
			said = append(said, bytes.Clone(transcript.Bytes()))
		}
	}
	return said
}

type heardConn struct {
	net.Conn
	peer       *peer
	transcript *bytes.Buffer
}

func (c *heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	c.transcript.Write(b[:n])
	return n, err
}

// serve speaks on every connection until the test ends or its other side hangs
// up.
func (p *peer) serve(t *testing.T, speak func(net.Conn)) {
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := p.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				speak(conn)
			})
		}
	})
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		serving.Wait()
	})
}

type connKey struct{}

// serveHTTP answers requests until the test ends.
func (p *peer) serveHTTP(t *testing.T, handler http.HandlerFunc) {
	server := &http.Server{
		Handler: handler, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn.(*heardConn).Conn)
		},
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(p); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		serving.Wait()
	})
}

// exporter is the keying material of the connection that a request came on.
func exporter(r *http.Request) ([]byte, error) {
	state := r.Context().Value(connKey{}).(*tls.Conn).ConnectionState()
	return state.ExportKeyingMaterial(wire.TLSExporterLabel, nil, wire.TLSExporterBytes)
}

// hearsNothing: not one byte was sent.
func hearsNothing(t *testing.T, p *peer) {
	t.Helper()
	require.Empty(t, p.transcripts())
}

// hearsAGreeting: every byte is TLS's own ClientHello or the alert that ended
// the attempt, and there was one.
func hearsAGreeting(t *testing.T, p *peer) {
	t.Helper()
	hearsRecords(t, p, tlsAlert, tlsHandshake)
}

// hearsOnlyTLS: whatever was sent is under the real server's key.
func hearsOnlyTLS(t *testing.T, p *peer) {
	t.Helper()
	hearsRecords(t, p, tlsChange, tlsAlert, tlsHandshake, tlsApplication)
}

// Types of TLS records, and the length of their header.
const (
	tlsChange      byte = 0x14
	tlsAlert       byte = 0x15
	tlsHandshake   byte = 0x16
	tlsApplication byte = 0x17
	tlsHeader           = 5
)

// hearsRecords: something was sent, and every byte belongs to a whole TLS record
// of one of the kinds, a handshake first.
func hearsRecords(t *testing.T, p *peer, kinds ...byte) {
	t.Helper()
	said := p.transcripts()
	require.NotEmpty(t, said)
	for _, rest := range said {
		require.Equal(t, tlsHandshake, rest[0])
		for len(rest) > 0 {
			require.Greater(t, len(rest), tlsHeader)
			require.Contains(t, kinds, rest[0])
			length := tlsHeader + int(rest[3])<<8 + int(rest[4])
			require.GreaterOrEqual(t, len(rest), length)
			rest = rest[length:]
		}
	}
}

// hearsVerification: every byte belongs to a request for the identity or for a
// proof, each as bare as it can be: no credential, no header of ours, nothing in
// the body but a challenge, the number of a rotation and the peer's own address.
func hearsVerification(t *testing.T, p *peer) {
	t.Helper()
	requests := p.requests(t)
	require.NotEmpty(t, requests)
	for _, r := range requests {
		p.isVerification(t, r)
	}
}

// hearsIdentityOnly: nothing but requests for the identity was sent.
func hearsIdentityOnly(t *testing.T, p *peer) {
	t.Helper()
	hearsVerification(t, p)
	for _, r := range p.requests(t) {
		require.Equal(t, wire.RouteIdentity, r.path)
	}
}

// request is one that was heard, read from the bytes alone.
type request struct {
	method, path, host string
	header             http.Header
	body               []byte
}

// requests reads all that was heard; bytes that are no request fail the test.
func (p *peer) requests(t *testing.T) []request {
	t.Helper()
	var all []request
	for _, transcript := range p.transcripts() {
		reader := bufio.NewReader(bytes.NewReader(transcript))
		for {
			r, err := http.ReadRequest(reader)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			all = append(all, request{r.Method, r.URL.String(), r.Host, r.Header, body})
		}
	}
	return all
}

func (p *peer) isVerification(t *testing.T, r request) {
	t.Helper()
	require.Equal(t, p.endpoint(), r.host)
	for name := range r.header {
		require.Contains(t, []string{"User-Agent", "Content-Type", "Content-Length"}, name)
	}
	switch r.method + " " + r.path {
	case http.MethodGet + " " + wire.RouteIdentity:
		require.Empty(t, r.body)
	case http.MethodPost + " " + wire.RouteProve:
		decoder := json.NewDecoder(bytes.NewReader(r.body))
		decoder.DisallowUnknownFields()
		var prove wire.ProveRequest
		require.NoError(t, decoder.Decode(&prove))
		require.Equal(t, p.endpoint(), prove.Endpoint)
	default:
		require.Fail(t, "another request than for verification", "%s %s", r.method, r.path)
	}
}
