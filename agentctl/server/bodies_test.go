package server_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/server"
	"github.com/kandev/recovery/agentctl/wire"
)

// carrying are the routes whose bodies carry a user's content.
var carrying = []string{"PUT " + wire.RouteInstance, "PUT " + wire.RouteTurn, "PUT " + wire.RouteFileContent}

// Every route bounds the body that it takes into memory, to little where it
// needs little, and a request beyond the bound has no effect.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	owner, token := r.own(t)
	raw := rawHTTP(t, r)
	t.Run("routes", func(t *testing.T) {
		for _, pattern := range r.Patterns() {
			accepted, limit, presented := server.MaxSmallBody, server.MaxSmallBody, ""
			switch {
			case pattern == "GET "+wire.RouteEvents:
				continue // takes no body
			case slices.Contains(carrying, pattern):
				accepted, limit, presented = server.MaxSmallBody+1, wire.MaxRequestBytes, "Bearer "+token
			}
			t.Run(pattern, func(t *testing.T) {
				t.Parallel() // a refused body holds its connection for a moment
				code := raw.send(t, pattern, presented, strings.Repeat(" ", accepted))
				require.NotEqual(t, wire.CodeTooLarge, code)
				code = raw.send(t, pattern, "Bearer "+token, strings.Repeat(" ", limit+1))
				require.Equal(t, wire.CodeTooLarge, code)
			})
		}
	})
	list, err := owner.List(t.Context())
	require.NoError(t, err, "the credential was rotated, or the end decided")
	require.Empty(t, list)
}

// endless is a body that never ends, and knows how much of it was taken.
type endless struct{ taken *atomic.Int64 }

func (e endless) Read(p []byte) (int, error) {
	clear(p)
	e.taken.Add(int64(len(p)))
	return len(p), nil
}

// A sender without an end is cut off, and soon.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	const buffered = 16 << 20 // generously, what the two kernels hold on the way
	r := start(t, time.Now)
	raw := rawHTTP(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for _, chunked := range []bool{true, false} {
		var taken atomic.Int64
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+r.Endpoint()+wire.RouteHandshake, endless{&taken})
		require.NoError(t, err)
		if !chunked {
			request.ContentLength = 1 << 40
		}
		if response, err := raw.http.Do(request); err == nil {
			require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
			_, err := io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		}
		require.NoError(t, ctx.Err())
		require.Less(t, taken.Load(), int64(buffered))
	}
}
