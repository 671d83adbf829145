package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/kandev/recovery/internal/credential"
)

const (
	keptIdle    = 16
	idleTimeout = 90 * time.Second
)

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

func newTransport(dial dialFunc) *http.Transport {
	return &http.Transport{
		DialTLSContext:      dial,
		Proxy:               nil, // a proxy would see the credential
		DisableCompression:  true,
		MaxIdleConnsPerHost: keptIdle,
		IdleConnTimeout:     idleTimeout,
	}
}

// pinnedDialer opens TLS 1.3 connections to the holder of one certificate's key
// and to nobody else. The key is new in every server process, so a process that
// took over the port fails here, before anything is sent to it.
func pinnedDialer(fingerprint string) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := dialLoopback(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, pinned(fingerprint))
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, classifyHandshake(err)
		}
		return conn, nil
	}
}

func pinned(fingerprint string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// There is no authority to ask: the fingerprint check replaces the chain,
		// and TLS itself still proves possession of the key.
		InsecureSkipVerify: true,
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(raw) == 0 || !credential.Equal(credential.Fingerprint(raw[0]), fingerprint) {
				return fmt.Errorf("%w: other certificate", ErrIdentity)
			}
			return nil
		},
	}
}

// dialLoopback connects to addr. A loopback address counts as refused only if
// its other family refuses as well (O-001.8); whatever answers there still has
// to hold the pinned key.
func dialLoopback(ctx context.Context, network, addr string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, addr)
	if err == nil {
		return conn, nil
	}
	if !nothingListens(err) {
		return nil, classify(err)
	}
	if other, ok := otherFamily(addr); ok {
		if conn, err = dialer.DialContext(ctx, network, other); err == nil {
			return conn, nil
		}
		if !nothingListens(err) {
			return nil, classify(err)
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrRefused, err)
}

// otherFamily returns the same port on the other loopback family, if addr is a
// loopback literal. Names are resolved to both families by the dialer.
func otherFamily(addr string) (string, bool) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", false
	}
	ip := net.ParseIP(host)
	switch {
	case ip == nil || !ip.IsLoopback():
		return "", false
	case ip.To4() != nil:
		return net.JoinHostPort(net.IPv6loopback.String(), port), true
	default:
		return net.JoinHostPort("127.0.0.1", port), true
	}
}
