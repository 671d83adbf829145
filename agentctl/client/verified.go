package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/kandev/recovery/agentctl/wire"
)

// errSecondDial: the proof is bound to one connection; a request that would
// open another one fails instead.
var errSecondDial = errors.New("the connection under proof was closed")

// verified is one connection on which identity and proof are exchanged.
type verified struct {
	http      *http.Client
	transport *http.Transport
	conn      *tls.Conn
	exporter  []byte // keying material that only the two ends of conn know
}

func dialVerified(ctx context.Context, cfg Config) (*verified, error) {
	raw, err := pinnedDialer(cfg.Fingerprint)(ctx, "tcp", cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	conn := raw.(*tls.Conn)
	state := conn.ConnectionState()
	exporter, err := state.ExportKeyingMaterial(wire.TLSExporterLabel, nil, wire.TLSExporterBytes)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	var used atomic.Bool
	transport := newTransport(func(context.Context, string, string) (net.Conn, error) {
		if used.Swap(true) {
			return nil, errSecondDial
		}
		return conn, nil
	})
	return &verified{
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		transport: transport, conn: conn, exporter: exporter,
	}, nil
}

func (v *verified) close() {
	v.transport.CloseIdleConnections()
	v.conn.Close()
}
