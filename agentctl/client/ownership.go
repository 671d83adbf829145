package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// Identity reads what anybody may know of the server. An answer without an
// identity or without a capability set is ErrIdentity (O-001.5); a server that is
// about to be gone says so in a *wire.Error with CodeShuttingDown (O-001.8).
func (c *Client) Identity(ctx context.Context) (wire.Identity, error) {
	return c.identity(ctx, c.http)
}

func (c *Client) identity(ctx context.Context, hc *http.Client) (wire.Identity, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var id wire.Identity
	err := exchange(ctx, hc, c.anonymous(), http.MethodGet, wire.RouteIdentity, nil, &id)
	var said *wire.Error
	switch {
	case errors.As(err, &said) && said.Code == wire.CodeShuttingDown:
		return wire.Identity{}, said
	case errors.Is(err, errUnreadable), errors.As(err, &said):
		return wire.Identity{}, fmt.Errorf("%w: unreadable identity", ErrIdentity)
	case err != nil:
		return wire.Identity{}, err
	case id.ServerIdentity == "" || id.Capabilities == nil:
		return wire.Identity{}, fmt.Errorf("%w: incomplete identity", ErrIdentity)
	}
	return id, nil
}

// Handshake exchanges the one-time nonce for the first credential. A lost
// answer cannot be asked for again.
func (c *Client) Handshake(ctx context.Context, nonce string) (wire.Issued, error) {
	var issued wire.Issued
	err := c.call(ctx, http.MethodPost, wire.RouteHandshake, wire.HandshakeRequest{Nonce: nonce}, &issued)
	return issued, checkIssued(issued, err)
}

// VerifyServer reads the server's identity and has it prove, on the same
// connection and before any credential is sent, that it holds the credential of
// the rotation (O-001.2, O-001.3, O-001.10). Whatever the identity said is
// covered by the proof. The errors are those of the package: ErrIdentity,
// ErrProof, ErrRefused, ErrNoAnswer, or a *wire.Error with CodeShuttingDown.
func (c *Client) VerifyServer(
	ctx context.Context, home, expectedIdentity, token string, rotationID uint64,
) (wire.Identity, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	conn, err := dialVerified(ctx, c.cfg)
	if err != nil {
		return wire.Identity{}, err
	}
	defer conn.close()

	id, err := c.identity(ctx, conn.http)
	if err != nil {
		return wire.Identity{}, err
	}
	if expectedIdentity == "" || id.ServerIdentity != expectedIdentity {
		return wire.Identity{}, fmt.Errorf("%w: other server identity", ErrIdentity)
	}
	statement := credential.Statement{
		Challenge:       credential.NewChallenge(),
		RotationID:      rotationID,
		Home:            home,
		Endpoint:        c.cfg.Endpoint,
		ServerIdentity:  id.ServerIdentity,
		Capabilities:    id.Capabilities,
		UnownedPeriodMS: id.UnownedPeriodMS,
		Exporter:        conn.exporter,
	}
	answer, err := c.prove(ctx, conn.http, statement)
	if err != nil {
		return wire.Identity{}, err
	}
	if !credential.VerifyProof(token, statement, answer) {
		return wire.Identity{}, fmt.Errorf("%w: wrong answer", ErrProof)
	}
	return id, nil
}

func (c *Client) prove(ctx context.Context, hc *http.Client, s credential.Statement) ([]byte, error) {
	request := wire.ProveRequest{
		Challenge:  base64.StdEncoding.EncodeToString(s.Challenge),
		RotationID: s.RotationID,
		Endpoint:   s.Endpoint,
	}
	var proof wire.ProveResponse
	err := exchange(ctx, hc, c.anonymous(), http.MethodPost, wire.RouteProve, request, &proof)
	var said *wire.Error
	switch {
	case errors.As(err, &said) && said.Code == wire.CodeShuttingDown:
		return nil, said
	case errors.As(err, &said), errors.Is(err, errUnreadable):
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	case err != nil:
		return nil, err
	}
	answer, err := base64.StdEncoding.DecodeString(proof.Answer)
	if err != nil {
		return nil, fmt.Errorf("%w: unreadable answer", ErrProof)
	}
	return answer, nil
}

// Rotate replaces the credential that this client presents. Repeating it with
// the same credential before the confirmation returns the same replacement
// (O-002.10), so a lost answer is asked for again.
func (c *Client) Rotate(ctx context.Context) (wire.Issued, error) {
	var issued wire.Issued
	err := c.call(ctx, http.MethodPost, wire.RouteRotate, nil, &issued)
	return issued, checkIssued(issued, err)
}

func checkIssued(issued wire.Issued, err error) error {
	if err == nil && (issued.Credential == "" || issued.RotationID == 0) {
		return fmt.Errorf("%w: answer without a credential", ErrNoAnswer)
	}
	return err
}

// Confirm says that the credential of the rotation is durably stored. It is
// presented by that credential, and may be repeated.
func (c *Client) Confirm(ctx context.Context, rotationID uint64) (wire.ConfirmResponse, error) {
	var confirmed wire.ConfirmResponse
	err := c.call(ctx, http.MethodPost, wire.RouteConfirm, wire.ConfirmRequest{RotationID: rotationID}, &confirmed)
	return confirmed, err
}

// Claim renews ownership.
func (c *Client) Claim(ctx context.Context) (wire.ClaimResponse, error) {
	var claimed wire.ClaimResponse
	err := c.call(ctx, http.MethodPost, wire.RouteClaim, nil, &claimed)
	return claimed, err
}

// Shutdown has the server stop every instance and exit. It is answered once
// that is decided, not once it is done.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, wire.RouteShutdown, nil, nil)
}

// Details describes the server; the answer contains paths of its host.
func (c *Client) Details(ctx context.Context) (wire.Details, error) {
	var details wire.Details
	err := c.call(ctx, http.MethodGet, wire.RouteDetails, nil, &details)
	return details, err
}

// Memory has the server collect its garbage, which takes milliseconds, and tell
// what is left. It is for measurements.
func (c *Client) Memory(ctx context.Context) (wire.Memory, error) {
	var memory wire.Memory
	err := c.call(ctx, http.MethodGet, wire.RouteMemory, nil, &memory)
	return memory, err
}

// anonymous is the configuration without the credential.
func (c *Client) anonymous() Config {
	cfg := c.cfg
	cfg.Credential = ""
	return cfg
}

func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.cfg.HTTPTimeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.cfg.HTTPTimeout)
}
