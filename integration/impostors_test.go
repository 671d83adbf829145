package integration

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// An impostor is what somebody may put where the record points. Those that speak
// TLS hold the recorded certificate: what they hear then is all that a pin
// would otherwise have kept from them.

// overHTTP is an impostor that speaks TLS and HTTP.
func overHTTP(handler func(*siege) http.HandlerFunc) func(*testing.T, *siege) *peer {
	return func(t *testing.T, s *siege) *peer {
		p := listenTLS(t)
		p.serveHTTP(t, handler(s))
		return p
	}
}

// overTCP is an impostor that takes the recorded port and has no key to show.
func overTCP(speak func(*siege) func(net.Conn)) func(*testing.T, *siege) *peer {
	return func(t *testing.T, s *siege) *peer {
		p := listen(t, "127.0.0.1:0")
		p.serve(t, speak(s))
		return p
	}
}

// identified answers the identity as the real server does, and what else is
// asked as the impostor does.
func identified(prove http.HandlerFunc) func(*siege) http.HandlerFunc {
	return func(s *siege) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wire.RouteIdentity {
				answer(rw, s.identity())
				return
			}
			prove(rw, r)
		}
	}
}

func answer(rw http.ResponseWriter, body any) {
	rw.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(rw).Encode(body); err != nil {
		panic(http.ErrAbortHandler) // the other side hung up
	}
}

// yes agrees to everything, with whatever anybody might have asked for.
func yes(rw http.ResponseWriter, _ *http.Request) {
	answer(rw, map[string]any{
		"rotation_id": 99, "credential": "taken", "answer": "bm90IGEgcHJvb2Y=", "unowned_period_ms": 600_000,
		"instances": []any{},
	})
}

// echo sends back what it was sent.
func echo(rw http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(rw, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// echoProof takes the challenge for the answer.
func echoProof(rw http.ResponseWriter, r *http.Request) {
	var asked wire.ProveRequest
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		panic(http.ErrAbortHandler)
	}
	answer(rw, wire.ProveResponse{Answer: asked.Challenge})
}

// replay answers every challenge with a proof that the real server gave once.
func replay(s *siege) http.HandlerFunc {
	return identified(func(rw http.ResponseWriter, _ *http.Request) { answer(rw, s.proof) })(s)
}

// unable is the real server's identity without what it can do.
func unable(s *siege) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		answer(rw, map[string]any{"server_identity": s.record.ServerIdentity, "unowned_period_ms": 600_000})
	}
}

// ending says that it is shutting down.
func ending(rw http.ResponseWriter, _ *http.Request) {
	rw.WriteHeader(http.StatusServiceUnavailable)
	answer(rw, wire.ErrorBody{Error: &wire.Error{Code: wire.CodeShuttingDown, Message: "ending"}})
}

// silent takes the request and never answers.
func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// lateness is longer than the longest budget that a read can have.
const lateness = 8 * time.Second

// late gives the right identity when nobody waits for it any more.
func late(s *siege) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(lateness)
		defer timer.Stop()
		select {
		case <-timer.C:
			answer(rw, s.identity())
		case <-r.Context().Done():
		}
	}
}

// hangUp breaks the connection off in place of an answer.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// halfAnAnswer promises more than it sends before it breaks off.
func halfAnAnswer(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Length", "4096")
	if _, err := io.WriteString(rw, `{"answer":"`); err != nil {
		panic(http.ErrAbortHandler)
	}
	if err := http.NewResponseController(rw).Flush(); err != nil {
		panic(http.ErrAbortHandler)
	}
	panic(http.ErrAbortHandler)
}

// relayed ends TLS itself and hands every request on to the real server as that
// wants to be addressed; bend may alter it.
func relayed(bend func(s *siege, r *httputil.ProxyRequest)) func(*siege) http.HandlerFunc {
	return func(s *siege) http.HandlerFunc {
		proxy := &httputil.ReverseProxy{
			Transport: &http.Transport{
				TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it relays to whoever is there
				DisableKeepAlives: true,
			},
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(&url.URL{Scheme: "https", Host: s.record.Endpoint})
				bend(s, r)
			},
		}
		return proxy.ServeHTTP
	}
}

func asItCame(*siege, *httputil.ProxyRequest) {}

// readdressed has the real server asked for a proof of its own address, which it
// gives; the relay then holds a genuine answer to the very challenge.
func readdressed(s *siege, r *httputil.ProxyRequest) {
	if r.In.URL.Path != wire.RouteProve {
		return
	}
	var asked wire.ProveRequest
	if err := json.NewDecoder(r.In.Body).Decode(&asked); err != nil {
		panic(http.ErrAbortHandler)
	}
	asked.Endpoint = s.record.Endpoint
	body, err := json.Marshal(asked)
	if err != nil {
		panic(err)
	}
	r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// passedOn hands the bytes on to the real server and back: the key, the
// identity and the proof are genuine, the address is not.
func passedOn(s *siege) func(net.Conn) {
	return func(in net.Conn) {
		out, err := net.Dial("tcp", s.record.Endpoint)
		if err != nil {
			return
		}
		defer out.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer in.Close()
			pour(in, out)
		}()
		pour(out, in)
		out.Close()
		<-done
	}
}

// pour copies until either side is gone, which is how every connection of a
// relay ends.
func pour(to io.Writer, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil {
		return
	}
}

// passedOnNextDoor is passedOn at the real server's port on the other loopback
// family, which the real server takes for its own name.
func passedOnNextDoor(t *testing.T, s *siege) *peer {
	_, port, err := net.SplitHostPort(s.record.Endpoint)
	require.NoError(t, err)
	p := listen(t, net.JoinHostPort(net.IPv6loopback.String(), port))
	p.serve(t, passedOn(s))
	return p
}

// says is an impostor that greets first, or answers whatever comes.
func says(text string) func(*siege) func(net.Conn) {
	return func(*siege) func(net.Conn) {
		return func(conn net.Conn) {
			if _, err := io.WriteString(conn, text); err == nil {
				pour(io.Discard, conn)
			}
		}
	}
}

// mute takes connections, reads what comes and never says a word.
func mute(*siege) func(net.Conn) { return func(conn net.Conn) { pour(io.Discard, conn) } }

// muteNextDoor listens on the other loopback family only; the record names the
// same port where nobody listens.
func muteNextDoor(t *testing.T, s *siege) *peer {
	p := listen(t, "[::1]:0")
	p.named = "127.0.0.1:" + p.port(t)
	p.serve(t, mute(s))
	return p
}

// ask has the real server prove itself to a stranger, as anybody may.
func ask(t *testing.T, endpoint string, rotation uint64) wire.ProveResponse {
	t.Helper()
	body, err := json.Marshal(wire.ProveRequest{
		Challenge: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", RotationID: rotation, Endpoint: endpoint,
	})
	require.NoError(t, err)
	anybody := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // a stranger knows no fingerprint
	}}
	answered, err := anybody.Post("https://"+endpoint+wire.RouteProve, "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer answered.Body.Close()
	require.Equal(t, http.StatusOK, answered.StatusCode)
	var proof wire.ProveResponse
	require.NoError(t, json.NewDecoder(answered.Body).Decode(&proof))
	require.NotEmpty(t, proof.Answer)
	return proof
}
