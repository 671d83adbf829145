package ownership

import (
	"context"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// Handshake exchanges the nonce for the first credential, once. It renews.
func (a *Authority) Handshake(nonce string) (wire.Issued, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nonce == "" || nonce == "" || !credential.Equal(a.nonce, nonce) {
		return wire.Issued{}, errUnauthenticated()
	}
	if a.deciding() {
		return wire.Issued{}, errShuttingDown()
	}
	a.nonce = ""
	a.current = issue{token: credential.NewToken(), id: 1}
	a.renew()
	return a.issued(), nil
}

// Rotate replaces the newest credential, or returns its replacement again to
// the holder of the superseded one (O-002.10). It renews, replays included.
//
// Everything admitted so far is cancelled, and Rotate answers only once all of
// it has ended: whatever an earlier owner left in flight is over when the new
// one learns its credential (O-002.2, W-7). If ctx ends first the rotation
// stands, and presenting the same credential again goes on waiting.
func (a *Authority) Rotate(ctx context.Context, token string) (wire.Issued, error) {
	issued, earlier, err := a.rotate(token)
	if err != nil {
		return wire.Issued{}, err
	}
	if err := await(ctx, earlier); err != nil {
		return wire.Issued{}, err
	}
	return issued, nil
}

func (a *Authority) rotate(token string) (wire.Issued, []*Admission, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.requireAcceptable(token); err != nil {
		return wire.Issued{}, nil, err
	}
	if a.deciding() {
		return wire.Issued{}, nil, errShuttingDown()
	}
	if a.current.is(token) {
		a.retired.add(a.superseded.token)
		a.superseded = a.current
		a.current = issue{token: credential.NewToken(), id: a.superseded.id + 1}
	}
	a.renew()
	return a.issued(), a.revoke(), nil
}

// Confirm retires the superseded credential once the rotation that issued the
// newest one is named. Naming an earlier rotation is accepted without effect, a
// repetition too (O-002.6). It returns the rotation that drives. An adoption does
// not complete once a shutdown is decided (O-003.9).
func (a *Authority) Confirm(token string, rotation uint64) (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.requireNewest(token); err != nil {
		return 0, err
	}
	if rotation == 0 || rotation > a.current.id {
		return 0, &wire.Error{Code: wire.CodeUnknownRotation, Message: "no such rotation"}
	}
	if a.deciding() {
		return 0, errShuttingDown()
	}
	if rotation == a.current.id {
		a.retired.add(a.superseded.token)
		a.superseded = issue{}
	}
	return a.current.id, nil
}

// Claim renews ownership on behalf of the newest credential.
func (a *Authority) Claim(token string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.requireNewest(token); err != nil {
		return err
	}
	if a.deciding() {
		return errShuttingDown()
	}
	a.renew()
	return nil
}

// Prove answers a challenge under the acceptable credential that the statement
// names by its rotation (O-001.10). It renews nothing.
func (a *Authority) Prove(statement credential.Statement) ([]byte, error) {
	token, err := a.issuedBy(statement.RotationID)
	if err != nil {
		return nil, err
	}
	return credential.Proof(token, statement)
}

func (a *Authority) issuedBy(rotation uint64) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range []issue{a.current, a.superseded} {
		if i.token != "" && i.id == rotation {
			return i.token, nil
		}
	}
	return "", &wire.Error{Code: wire.CodeUnknownRotation, Message: "no acceptable credential of that rotation"}
}

// issued is the newest credential as its holder learns it. The caller holds the
// lock.
func (a *Authority) issued() wire.Issued {
	return wire.Issued{
		Credential:      a.current.token,
		RotationID:      a.current.id,
		UnownedPeriodMS: a.period.Milliseconds(),
	}
}
