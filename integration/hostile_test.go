package integration

import (
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
	"github.com/kandev/recovery/userapi"
)

// attempt is one adoption that must not come about.
type attempt struct {
	name string
	// inFull: only the long run makes this attempt. What it shows, another one
	// shows of a neighbouring stage.
	inFull bool
	// tempt puts somebody where the record points, who must then be named.
	tempt func(*testing.T, *siege) *peer
	// pinned: the record keeps the real server's fingerprint.
	pinned bool
	// impatient: this is about what does not answer.
	impatient bool
	verdict   recovery.Verdict // refused, unless it says otherwise
	reason    recovery.RefusalReason
	hears     func(*testing.T, *peer)
}

// attempts are in the order of the stages at which they fail: the connection,
// the key, the identity, the proof.
var attempts = []attempt{
	{name: "accepts and never answers", tempt: overTCP(mute), impatient: true, inFull: true,
		reason: recovery.RefusedNoAnswer, hears: hearsAGreeting},
	{name: "listens on the other loopback family only", tempt: muteNextDoor, impatient: true,
		reason: recovery.RefusedNoAnswer, hears: hearsAGreeting},
	{name: "greets as another protocol", tempt: overTCP(says("SSH-2.0-OpenSSH_9.9\r\n")),
		reason: recovery.RefusedIdentityMismatch, hears: hearsAGreeting},
	{name: "answers without TLS", tempt: overTCP(says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")), inFull: true,
		reason: recovery.RefusedIdentityMismatch, hears: hearsAGreeting},
	{name: "has another key", tempt: overHTTP(identified(yes)), pinned: true, inFull: true,
		reason: recovery.RefusedIdentityMismatch, hears: hearsNothing},

	{name: "takes the request and never answers", tempt: overHTTP(handles(silent)), impatient: true, inFull: true,
		reason: recovery.RefusedNoAnswer, hears: hearsIdentityOnly},
	{name: "answers too late", tempt: overHTTP(late), impatient: true,
		reason: recovery.RefusedNoAnswer, hears: hearsIdentityOnly},
	{name: "answers 200 to everything", tempt: overHTTP(handles(yes)),
		reason: recovery.RefusedIdentityMismatch, hears: hearsIdentityOnly},
	{name: "echoes", tempt: overHTTP(handles(echo)), inFull: true,
		reason: recovery.RefusedIdentityMismatch, hears: hearsIdentityOnly},
	{name: "tells no capabilities", tempt: overHTTP(unable),
		reason: recovery.RefusedIdentityMismatch, hears: hearsIdentityOnly},
	{name: "passes the bytes on from another port", tempt: overTCP(passedOn), inFull: true,
		reason: recovery.RefusedIdentityMismatch, hears: hearsOnlyTLS},

	{name: "knows the identity and answers 200", tempt: overHTTP(identified(yes)), inFull: true,
		reason: recovery.RefusedAuthenticationFailure, hears: hearsVerification},
	{name: "knows the identity and echoes the challenge", tempt: overHTTP(identified(echoProof)),
		reason: recovery.RefusedAuthenticationFailure, hears: hearsVerification},
	{name: "replays a proof", tempt: overHTTP(replay),
		reason: recovery.RefusedAuthenticationFailure, hears: hearsVerification},
	{name: "relays", tempt: overHTTP(relayed(asItCame)), inFull: true,
		reason: recovery.RefusedAuthenticationFailure, hears: hearsVerification},
	{name: "relays and has the real server prove its own address", tempt: overHTTP(relayed(readdressed)),
		reason: recovery.RefusedAuthenticationFailure, hears: hearsVerification},
	{name: "passes the bytes on from another address of the host", tempt: passedOnNextDoor,
		reason: recovery.RefusedAuthenticationFailure, hears: hearsOnlyTLS},
	{name: "hangs up at the challenge", tempt: overHTTP(identified(hangUp)), impatient: true, inFull: true,
		reason: recovery.RefusedNoAnswer, hears: hearsVerification},
	{name: "breaks off within its proof", tempt: overHTTP(identified(halfAnAnswer)), impatient: true,
		reason: recovery.RefusedNoAnswer, hears: hearsVerification},
	{name: "says at the challenge that it is ending", tempt: overHTTP(identified(ending)),
		verdict: recovery.VerdictFresh, hears: hearsVerification},
	{name: "says at once that it is ending", tempt: overHTTP(handles(ending)), inFull: true,
		verdict: recovery.VerdictFresh, hears: hearsIdentityOnly},
}

// handles is an impostor that knows nothing of whom it stands in for.
func handles(handler http.HandlerFunc) func(*siege) http.HandlerFunc {
	return func(*siege) http.HandlerFunc { return handler }
}

// O-001.2 to O-001.8, O-001.10, S-002.12: whoever sits where the record points,
// and whatever it holds short of the credential, hears at most the questions of
// the verification: never a credential, a rotation or a stop. The backend says
// why it refused, starts a server of its own on another port, records it, and
// leaves the real server, its agents and its credential alone, which is adopted
// at once when the record points to it again.
func TestNobodyElseIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := besiege(w)
	for _, a := range attempts {
		if a.inFull && !long() {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			w.within(t)
			defer s.mend()
			p := a.tempt(t, s)
			if a.pinned {
				p.fingerprint = ""
			}
			s.name(p)
			secret := s.sealed()
			// A listener on either loopback family takes the port (O-001.7).
			settings := []string{"KANDEV_AGENTCTL_PORT=" + p.port(t)}
			if a.impatient {
				settings = append(settings, impatience()...)
			}
			pass := s.start(settings...).serving().status.Recovery
			if a.verdict == "" {
				a.verdict = recovery.VerdictRefused
			}
			require.Equal(t, a.verdict, pass.Verdict)
			require.Equal(t, a.reason, pass.Reason)
			s.standsAlone(secret, p.port(t))
			a.hears(t, p)
			for _, said := range p.transcripts() {
				require.NotContains(t, string(said), s.token)
			}
		})
	}
	s.endures()
}

// impatience is a small budget for what does not answer; the long run waits as
// long as a user does.
func impatience() []string {
	if long() {
		return nil
	}
	return []string{"KANDEV_ACP_RECOVERY_READ_TIMEOUT=300ms", "KANDEV_ACP_RECOVERY_READ_RETRIES=1"}
}

func portOf(t *testing.T, endpoint string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(endpoint)
	require.NoError(t, err)
	return port
}

// refused checks that a prompt of the session is refused with the code.
func refused(t *testing.T, a *agent, code userapi.Code) {
	t.Helper()
	_, err := a.w.backend.client.Prompt(t.Context(), a.session, "again", "stream 1")
	var refusal *userapi.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, code, refusal.Code)
	require.Equal(t, code == userapi.CodeRecovering, refusal.Retryable)
}
