package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// probeTimeout bounds how long a loopback port may leave open whether somebody
// listens on it. One that does counts as occupied.
const probeTimeout = 500 * time.Millisecond

// fallbackHost is bound if the configured host is a name (O-001.12).
const fallbackHost = "127.0.0.1"

// ErrUnspecifiedHost refuses to listen on all interfaces (O-001.12).
var ErrUnspecifiedHost = errors.New("a control server does not listen on all interfaces")

// Listen binds the preferred port of host, or one that the system chooses if
// the preferred port is zero or taken. A listener on either loopback family
// means taken (O-001.7).
func Listen(ctx context.Context, host string, port int) (net.Listener, error) {
	ip := net.ParseIP(host)
	if host == "" || (ip != nil && ip.IsUnspecified()) {
		return nil, ErrUnspecifiedHost
	}
	if port > 0 {
		free, err := freeOnLoopback(ctx, port)
		if err != nil {
			return nil, err
		}
		if free {
			if ln, err := bind(ctx, host, port); err == nil || !addressInUse(err) {
				return ln, err
			}
		}
	}
	if ip == nil {
		host = fallbackHost
	}
	return bind(ctx, host, 0)
}

func bind(ctx context.Context, host string, port int) (net.Listener, error) {
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return ln, nil
}

// freeOnLoopback reports whether neither loopback family has a listener. Only a
// connection that is refused says so.
func freeOnLoopback(ctx context.Context, port int) (bool, error) {
	dialer := net.Dialer{Timeout: probeTimeout}
	for _, host := range []string{fallbackHost, net.IPv6loopback.String()} {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			conn.Close()
			return false, nil
		}
		if !nothingListens(err) {
			return false, ctx.Err()
		}
	}
	return true, nil
}
