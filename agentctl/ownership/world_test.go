package ownership

import (
	"bytes"
	"context"
	"maps"
	"time"

	"pgregory.net/rapid"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// backend is one backend process: what it has in memory.
type backend struct {
	read   issue // from the disk, at its boot
	issued issue // what a rotation answered
	stored bool  // issued is on the disk
}

// held is a request or a stream of some backend that is being served.
type held struct {
	rotation  uint64
	admission *Admission
}

// world is one control server beside its register, and two backends that share
// a home: its disk is all that survives of them.
type world struct {
	authority *Authority
	clock     *fakeClock
	due       time.Time // when the watch judges next
	model     register

	tokens   map[uint64]string // every credential ever issued
	disk     issue
	backends [2]backend
	held     []held
}

func newWorld(t *rapid.T) *world {
	a, clock := newAuthority()
	issued, err := a.Handshake(nonce)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{authority: a, clock: clock, due: clock.now, tokens: map[uint64]string{}}
	w.model = register{newest: 1, renewed: clock.now}
	w.disk = w.learn(issued)
	return w
}

// learn notes an answer, also one that no backend gets to see.
func (w *world) learn(issued wire.Issued) issue {
	w.tokens[issued.RotationID] = issued.Credential
	return issue{token: issued.Credential, id: issued.RotationID}
}

func (w *world) backend(t *rapid.T) *backend {
	return &w.backends[rapid.IntRange(0, len(w.backends)-1).Draw(t, "backend")]
}

// write is the store's transaction: it refuses to go back.
func (w *world) write(i issue) bool {
	if i.id < w.disk.id {
		return false
	}
	w.disk = i
	return true
}

// hold keeps an admission until its holder lets go or it is revoked.
func (w *world) hold(rotation uint64, m *Admission) {
	context.AfterFunc(m.Context(), m.Release)
	w.held = append(w.held, held{rotation, m})
}

func (w *world) close() {
	for _, h := range w.held {
		h.admission.Release()
	}
}

// fork is the same server in a world of its own, to see what would come of it.
func (w *world) fork() (*Authority, *fakeClock) {
	a, clock := newAuthority()
	clock.now = w.clock.now
	a.nonce, a.current, a.superseded = w.authority.nonce, w.authority.current, w.authority.superseded
	a.retired.known = maps.Clone(w.authority.retired.known)
	a.renewed, a.graceUntil = w.authority.renewed, w.authority.graceUntil
	if reason := w.authority.Reason(); reason != "" {
		a.ShutdownFor(reason)
	}
	return a, clock
}

// check is what holds after every step.
func (w *world) check(t *rapid.T) {
	if ended := w.authority.Reason() != ""; ended != w.model.ended {
		t.Fatalf("ended: %v", ended)
	}
	acceptable := 0
	for id, token := range w.tokens {
		if w.checkCredential(t, id, token) {
			acceptable++
		}
	}
	if acceptable > 2 {
		t.Fatalf("%d credentials are acceptable", acceptable)
	}
	for _, h := range w.held {
		if h.rotation != w.model.newest && h.admission.Context().Err() == nil {
			t.Fatalf("what rotation %d admitted goes on under %d", h.rotation, w.model.newest)
		}
	}
	w.checkNextBoot(t)
	w.checkLeftAlone(t)
}

// checkCredential says whether the credential is acceptable, and fails if it
// drives and is not the newest.
func (w *world) checkCredential(t *rapid.T, id uint64, token string) (acceptable bool) {
	if drives := w.authority.Check(token) == nil; drives != (id == w.model.newest) {
		t.Fatalf("credential %d drives: %v", id, drives)
	}
	for _, kind := range []Kind{Request, Stream} {
		m, err := w.authority.Admit(token, kind)
		if code(err) != w.model.standing(id) {
			t.Fatalf("credential %d admitted: %v", id, err)
		}
		if err == nil {
			m.Release()
		}
	}
	_, err := w.authority.issuedBy(id)
	acceptable = err == nil
	if acceptable != w.model.acceptable(id) {
		t.Fatalf("credential %d acceptable: %v", id, acceptable)
	}
	return acceptable
}

func proves(a *Authority, id uint64, token string) bool {
	statement := credential.Statement{Challenge: bytes.Repeat([]byte{1}, wire.MaxChallengeBytes), RotationID: id}
	answer, err := a.Prove(statement)
	return err == nil && credential.VerifyProof(token, statement, answer)
}

// checkNextBoot boots one more backend with nothing but the disk.
func (w *world) checkNextBoot(t *rapid.T) {
	a, _ := w.fork()
	if !proves(a, w.disk.id, w.disk.token) {
		t.Fatalf("the stored credential %d is not proven under %d", w.disk.id, w.model.newest)
	}
	issued, err := a.Rotate(context.Background(), w.disk.token)
	if w.model.ended {
		if code(err) != wire.CodeShuttingDown {
			t.Fatalf("adopted at its end: %v", err)
		}
		return
	}
	if err != nil || issued.RotationID < w.model.newest || issued.RotationID < w.disk.id {
		t.Fatalf("rotation %d with the stored credential %d: %v", issued.RotationID, w.disk.id, err)
	}
	driving, err := a.Confirm(issued.Credential, issued.RotationID)
	if err != nil || driving != issued.RotationID || a.Claim(issued.Credential) != nil {
		t.Fatalf("not adopted: %d, %v", driving, err)
	}
}

// checkLeftAlone lets the time pass that a server tolerates at most.
func (w *world) checkLeftAlone(t *rapid.T) {
	a, clock := w.fork()
	for end := clock.now.Add(period + a.RenewalInterval()); clock.now.Before(end); {
		clock.sleep(a.checkInterval())
		a.judge(clock.now)
	}
	if a.Reason() == "" {
		t.Fatal("nobody owns it, and it goes on")
	}
}
