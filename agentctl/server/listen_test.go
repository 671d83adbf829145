package server_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/server"
)

// freePort is a port that nobody listens on, on either loopback family.
func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// families are the loopback addresses that this host has.
func families(t *testing.T) []string {
	t.Helper()
	have := []string{"127.0.0.1"}
	if ln, err := net.Listen("tcp", "[::1]:0"); err == nil {
		require.NoError(t, ln.Close())
		have = append(have, "::1")
	}
	return have
}

func listen(t *testing.T, host string, port int) *net.TCPAddr {
	t.Helper()
	ln, err := server.Listen(t.Context(), host, port)
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().(*net.TCPAddr)
}

// O-001.12: the preferred port if it is free, on the host that is dialed.
func TestListenOnThePreferredPort(t *testing.T) {
	port := freePort(t)
	addr := listen(t, "127.0.0.1", port)
	require.Equal(t, "127.0.0.1:"+strconv.Itoa(port), addr.String())
}

// O-001.7: a listener on either loopback family means that the port is taken,
// whichever of them is wanted.
func TestListenAvoidsAPortTakenOnEitherFamily(t *testing.T) {
	for _, taken := range families(t) {
		for _, wanted := range families(t) {
			t.Run(taken+" for "+wanted, func(t *testing.T) {
				other, err := net.Listen("tcp", net.JoinHostPort(taken, "0"))
				require.NoError(t, err)
				defer other.Close()
				port := other.Addr().(*net.TCPAddr).Port

				addr := listen(t, wanted, port)
				require.NotEqual(t, port, addr.Port)
				require.True(t, addr.IP.Equal(net.ParseIP(wanted)))
			})
		}
	}
}

// O-001.12: a host that is an IP literal keeps its port to itself, wherever it is
// taken, and the fallback is on that very host.
func TestListenOnAHostWhosePortIsTaken(t *testing.T) {
	for _, host := range hosts(t) {
		other, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		require.NoError(t, err)
		defer other.Close()
		port := other.Addr().(*net.TCPAddr).Port

		addr := listen(t, host, port)
		require.NotEqual(t, port, addr.Port)
		require.True(t, addr.IP.Equal(net.ParseIP(host)))
	}
}

// hosts are the families, and where all of 127.0.0.0/8 is local another address
// of it, which no probe of the families finds taken.
func hosts(t *testing.T) []string {
	t.Helper()
	have := families(t)
	if ln, err := net.Listen("tcp", "127.0.0.2:0"); err == nil {
		require.NoError(t, ln.Close())
		have = append(have, "127.0.0.2")
	}
	return have
}

// O-001.12: a name falls back to IPv4 loopback, and all interfaces are refused.
func TestListenHosts(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	addr := listen(t, "localhost", other.Addr().(*net.TCPAddr).Port)
	require.Equal(t, "127.0.0.1", addr.IP.String())

	for _, host := range []string{"", "0.0.0.0", "::"} {
		_, err := server.Listen(t.Context(), host, 0)
		require.ErrorIs(t, err, server.ErrUnspecifiedHost)
	}
}
