package server

import (
	"net"
	"net/http"
	"strings"

	"github.com/kandev/recovery/agentctl/wire"
)

// guard refuses what a web page could send, before anything else looks at the
// request: another Host than the server's own, and any Origin (B-11).
type guard struct {
	hosts   map[string]bool
	answers answers
	next    http.Handler
}

func newGuard(endpoint string, a answers, next http.Handler) (*guard, error) {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return nil, err
	}
	hosts := map[string]bool{endpoint: true}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
			hosts[net.JoinHostPort(name, port)] = true
		}
	}
	return &guard{hosts: hosts, answers: a, next: next}, nil
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, hasOrigin := r.Header["Origin"]
	if hasOrigin || !g.hosts[strings.ToLower(r.Host)] {
		g.answers.refuse(w, &wire.Error{
			Code:    wire.CodeForeignOrigin,
			Message: "requests of web pages and for other hosts are not served",
		})
		return
	}
	g.next.ServeHTTP(w, r)
}

// bearer is the credential that a request presents, or empty.
func bearer(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get(wire.HeaderCredential), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}
