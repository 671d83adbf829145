package client_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// everything makes one call of each kind that carries the credential or a body.
func everything(ctx context.Context, c *client.Client) []error {
	_, err1 := c.Rotate(ctx)
	_, err2 := c.List(ctx)
	_, err3 := c.Create(ctx, "i", wire.CreateRequest{Env: map[string]string{"TOKEN": secret}})
	_, err4 := c.Handshake(ctx, secret)
	_, err5 := c.Events(ctx, "i", 0)
	_, err6 := c.VerifyServer(ctx, home, identity, secret, 1)
	return []error{err1, err2, err3, err4, err5, err6, c.Shutdown(ctx)}
}

// O-001.2, O-001.10: a stranger who took the port is sent nothing of ours,
// neither in the clear nor under its own certificate.
func TestStrangerOnThePortReceivesNothing(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		var mu sync.Mutex
		var received bytes.Buffer
		endpoint := listener(t, "127.0.0.1:0", func(conn net.Conn) {
			defer conn.Close()
			hello := make([]byte, 4096)
			n, err := conn.Read(hello)
			if err != nil {
				return
			}
			mu.Lock()
			received.Write(hello[:n])
			mu.Unlock()
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.9\r\n")
		})
		for _, err := range everything(t.Context(), pinning(t, endpoint, "00", timeout)) {
			require.ErrorIs(t, err, client.ErrIdentity)
		}
		mu.Lock()
		defer mu.Unlock()
		require.NotEmpty(t, received.Bytes())
		require.NotContains(t, received.String(), secret)
		require.NotContains(t, received.String(), "HTTP")
	})
	for name, config := range map[string]*tls.Config{
		"another certificate": {},
		"an old protocol":     {MaxVersion: tls.VersionTLS12},
	} {
		t.Run(name, func(t *testing.T) {
			stranger := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				t.Error("a request reached the stranger")
			}))
			stranger.TLS = config
			stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
			stranger.StartTLS()
			defer stranger.Close()
			pin := "00"
			if config.MaxVersion != 0 {
				pin = credential.Fingerprint(stranger.Certificate().Raw)
			}
			for _, err := range everything(t.Context(), pinning(t, stranger.Listener.Addr().String(), pin, timeout)) {
				require.ErrorIs(t, err, client.ErrIdentity)
			}
		})
	}
}

// O-001.2: the pin is checked on every new connection, also after the first one
// was good.
func TestPinIsCheckedOnEveryConnection(t *testing.T) {
	first, c := answering(t, body(http.StatusOK, `{"instances":[]}`))
	_, err := c.List(t.Context())
	require.NoError(t, err)
	addr := first.Listener.Addr().String()
	first.Close()

	stranger := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request reached the stranger")
	}))
	require.NoError(t, stranger.Listener.Close())
	stranger.Listener, err = net.Listen("tcp", addr)
	require.NoError(t, err)
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.TLS = &tls.Config{Certificates: []tls.Certificate{otherCertificate(t)}}
	stranger.StartTLS()
	defer stranger.Close()
	_, err = c.List(t.Context())
	require.ErrorIs(t, err, client.ErrIdentity)
}

// O-001.8: refused is told apart from silent, and a loopback port counts as
// refused only if both families refuse.
func TestRefusedAndSilent(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, ln.Close())
		for _, err := range everything(t.Context(), pinning(t, ln.Addr().String(), "00", timeout)) {
			require.ErrorIs(t, err, client.ErrRefused)
		}
	})
	t.Run("a listener on the other family", func(t *testing.T) {
		ln, err := net.Listen("tcp", "[::1]:0")
		if err != nil {
			t.Log("this host has one loopback family only")
			return
		}
		_, port, err := net.SplitHostPort(ln.Addr().String())
		require.NoError(t, err)
		require.NoError(t, ln.Close())
		listener(t, "[::1]:"+port, func(conn net.Conn) {
			_, _ = io.WriteString(conn, "SSH-2.0\r\n")
			conn.Close()
		})
		_, err = pinning(t, "127.0.0.1:"+port, "00", timeout).Identity(t.Context())
		require.Error(t, err)
		require.NotErrorIs(t, err, client.ErrRefused)
	})
	t.Run("silent", func(t *testing.T) {
		held := make(chan net.Conn, 100)
		endpoint := listener(t, "127.0.0.1:0", func(conn net.Conn) { held <- conn })
		for _, err := range everything(t.Context(), pinning(t, endpoint, "00", 50*time.Millisecond)) {
			require.ErrorIs(t, err, client.ErrNoAnswer)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		for range len(held) {
			require.NoError(t, (<-held).Close())
		}
	})
	t.Run("broken off", func(t *testing.T) {
		endpoint := listener(t, "127.0.0.1:0", func(conn net.Conn) { conn.Close() })
		for _, err := range everything(t.Context(), pinning(t, endpoint, "00", timeout)) {
			require.ErrorIs(t, err, client.ErrNoAnswer)
		}
	})
	t.Run("silent after the handshake", func(t *testing.T) {
		release := make(chan struct{})
		_, c := answering(t, func(http.ResponseWriter, *http.Request) { <-release })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := c.Identity(ctx)
		require.ErrorIs(t, err, client.ErrNoAnswer)
		close(release)
	})
}

// otherCertificate is one that nobody pins.
func otherCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}
