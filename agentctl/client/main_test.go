package client_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret   = "a-secret-credential"
	home     = "/the/home"
	identity = "the-server"
	timeout  = 5 * time.Second
)

// answering is a server with a key of its own, and a client that pins it.
func answering(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *client.Client) {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	return s, pinning(t, s.Listener.Addr().String(), credential.Fingerprint(s.Certificate().Raw), timeout)
}

func pinning(t *testing.T, endpoint, fingerprint string, limit time.Duration) *client.Client {
	t.Helper()
	c := client.New(client.Config{
		Endpoint: endpoint, Fingerprint: fingerprint, Credential: secret, HTTPTimeout: limit,
	})
	t.Cleanup(c.Close)
	return c
}

// listener accepts connections and gives each to handle, until the test ends.
func listener(t *testing.T, addr string, handle func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			handle(conn)
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

func requireCode(t *testing.T, want wire.Code, err error) {
	t.Helper()
	var refusal *wire.Error
	require.True(t, errors.As(err, &refusal), "%v", err)
	require.Equal(t, want, refusal.Code)
}

// body answers every request with the same text.
func body(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}
