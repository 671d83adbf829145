package api

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/kandev/recovery/internal/credential"
	"github.com/kandev/recovery/userapi"
)

// local refuses requests that a web page made, before anything else is looked at:
// a page of a foreign site sends its origin, and one that was bound to our address
// by its DNS server sends its own host (B-11).
func (s *Server) local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("Origin")) > 0 || !s.ours(r.Host) {
			s.refuse(w, r, &userapi.Error{
				Code: userapi.CodeForeignOrigin, Message: "requests from web pages and for other hosts are refused",
				Remedy: "use the command line, at the address that the backend reported",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) ours(hostport string) bool {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil || port != strconv.FormatInt(s.port.Load(), 10) {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || !credential.Equal(token, s.cfg.Token) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			s.refuse(w, r, &userapi.Error{
				Code: userapi.CodeUnauthenticated, Message: "the token is missing or wrong",
				Remedy: "send the content of the file api-token in the home directory as a bearer token",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}
