package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// O-001.2, O-001.3, O-001.10, O-002.7: adoption as a backend does it, also by
// one that crashed before its confirmation.
func TestAdoption(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	owner, first := r.own(t)
	ctx := t.Context()

	id, err := owner.VerifyServer(ctx, home, identity, first, 1)
	require.NoError(t, err)
	require.Equal(t, wire.Capabilities(), id.Capabilities)
	second, err := owner.Rotate(ctx)
	require.NoError(t, err)

	_, err = owner.VerifyServer(ctx, home, identity, first, 1)
	require.NoError(t, err, "the superseded credential is still proven")
	_, err = owner.VerifyServer(ctx, home, identity, second.Credential, second.RotationID)
	require.NoError(t, err)
	replayed, err := owner.Rotate(ctx)
	require.NoError(t, err)
	require.Equal(t, second, replayed)
	require.ErrorIs(t, owner.AckTurnOutcome(ctx, "i", "t"), client.ErrSuperseded)

	adopter := owner.WithCredential(second.Credential)
	confirmed, err := adopter.Confirm(ctx, second.RotationID)
	require.NoError(t, err)
	require.Equal(t, second.RotationID, confirmed.RotationID)
	claimed, err := adopter.Claim(ctx)
	require.NoError(t, err)
	require.Equal(t, period.Milliseconds(), claimed.UnownedPeriodMS)

	_, err = owner.VerifyServer(ctx, home, identity, first, 1)
	require.ErrorIs(t, err, client.ErrProof, "the confirmation ended it")
	_, err = owner.Rotate(ctx)
	require.ErrorIs(t, err, client.ErrSuperseded)
}

// O-001.10: nothing but the holder of the credential, under the same home,
// identity and rotation, passes.
func TestProofFails(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	owner, first := r.own(t)
	for name, test := range map[string]struct {
		home, identity, credential string
		rotation                   uint64
		want                       error
	}{
		"other credential": {home, identity, "other", 1, client.ErrProof},
		"other home":       {"/other", identity, first, 1, client.ErrProof},
		"other rotation":   {home, identity, first, 2, client.ErrProof},
		"other identity":   {home, "another", first, 1, client.ErrIdentity},
		"no identity":      {home, "", first, 1, client.ErrIdentity},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := owner.VerifyServer(t.Context(), test.home, test.identity, test.credential, test.rotation)
			require.ErrorIs(t, err, test.want)
		})
	}
}

// O-001.10: a relay that passes every byte on is given away by the endpoint as
// dialed: by its Host already, and by the proof if that were right.
func TestProofFailsThroughARelay(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	_, first := r.own(t)
	relayed := client.New(client.Config{
		Endpoint: relay(t, r.Endpoint()), Fingerprint: r.Fingerprint(), HTTPTimeout: deadline,
	})
	defer relayed.Close()
	_, err := relayed.VerifyServer(t.Context(), home, identity, first, 1)
	require.ErrorIs(t, err, client.ErrIdentity)

	request := wire.ProveRequest{
		Challenge: base64.StdEncoding.EncodeToString(credential.NewChallenge()), RotationID: 1, Endpoint: "127.0.0.1:1",
	}
	body, err := json.Marshal(request)
	require.NoError(t, err)
	require.Equal(t, wire.CodeBadRequest, rawHTTP(t, r).send(t, "POST "+wire.RouteProve, "", string(body)))
}

// relay passes connections on, byte for byte, until the test ends.
func relay(t *testing.T, to string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				return
			}
			go func() { defer out.Close(); _, _ = io.Copy(out, in) }()
			go func() { defer in.Close(); _, _ = io.Copy(in, out) }()
			context.AfterFunc(ctx, func() { in.Close(); out.Close() })
		}
	}()
	t.Cleanup(func() { ln.Close(); cancel(); <-done })
	return ln.Addr().String()
}

// O-002.10: the answer to a rotation is lost on the way; asking again with the
// same credential gives the same one, and only that.
func TestLostRotationAnswerIsReplayed(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	owner, first := r.own(t)
	lost := lostAnswer(t, r.Endpoint())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+r.Endpoint()+wire.RouteRotate, nil)
	require.NoError(t, err)
	request.Header.Set(wire.HeaderCredential, "Bearer "+first)
	_, err = lost.Do(request)
	require.Error(t, err)
	require.Eventually(t, func() bool {
		return r.authority.Check(first) != nil
	}, deadline, time.Millisecond, "the rotation took place")

	issued, err := owner.Rotate(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(2), issued.RotationID)
	again, err := owner.Rotate(t.Context())
	require.NoError(t, err)
	require.Equal(t, issued, again)
}

// lostAnswer is an HTTP client whose connections break instead of delivering.
func lostAnswer(t *testing.T, endpoint string) *http.Client {
	t.Helper()
	transport := &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dialInsecure(ctx, endpoint)
			return deaf{conn}, err
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// deaf is a connection whose reading side breaks as soon as an answer comes.
type deaf struct{ net.Conn }

func (d deaf) Read(p []byte) (int, error) {
	if _, err := d.Conn.Read(p); err != nil {
		return 0, err
	}
	return 0, io.ErrUnexpectedEOF
}

// W-7: a stop that an earlier owner left in flight is cut off by the rotation,
// which does not wait for the agent's grace. The new owner sees it as stopping.
func TestRotationCutsOffRequestsInFlight(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	owner, _ := r.own(t)
	createReady(t, owner, "i", map[string]string{envLinger: "1m"})
	stopped := make(chan error, 1)
	go func() {
		_, err := owner.Stop(context.Background(), "i", 2*time.Second)
		stopped <- err
	}()
	require.Eventually(t, func() bool {
		list := r.supervisor.List()
		return len(list) == 1 && list[0].State == wire.InstanceStopping
	}, deadline, time.Millisecond)

	issued, err := owner.Rotate(t.Context())
	require.NoError(t, err)
	require.Error(t, <-stopped)
	list, err := owner.WithCredential(issued.Credential).List(t.Context())
	require.NoError(t, err)
	require.Equal(t, wire.InstanceStopping, list[0].State)
}

// W-7: a request whose body is still on its way when the credential is rotated
// has no effect, and does not hold the rotation up.
func TestRotationDoesNotWaitForBodies(t *testing.T) {
	t.Parallel()
	r := start(t, time.Now)
	owner, first := r.own(t)
	conn, err := dialInsecure(t.Context(), r.Endpoint())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "DELETE /api/v1/instances/i HTTP/1.1\r\nHost: "+r.Endpoint()+
		"\r\nAuthorization: Bearer "+first+"\r\nContent-Length: 14\r\n\r\n")
	require.NoError(t, err)

	_, err = owner.Rotate(t.Context())
	require.NoError(t, err)
	_, err = io.WriteString(conn, `{"grace_ms": 1}`)
	require.NoError(t, err)
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	require.NoError(t, err)
	require.Contains(t, string(answer[:n]), string(wire.CodeSuperseded))
}
