package server

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

func (s *Server) health(context.Context, *http.Request, []byte) (any, error) { return empty{}, nil }

// identity tells what anybody may know (O-001.11).
func (s *Server) identity(context.Context, *http.Request, []byte) (any, error) {
	return s.describe(), nil
}

func (s *Server) describe() wire.Identity {
	return wire.Identity{
		ServerIdentity:  s.cfg.Identity,
		Capabilities:    wire.Advertised(),
		UnownedPeriodMS: s.cfg.Authority.Period().Milliseconds(),
	}
}

func (s *Server) handshake(_ context.Context, _ *http.Request, body []byte) (any, error) {
	request, err := decode[wire.HandshakeRequest](body)
	if err != nil {
		return nil, err
	}
	return s.cfg.Authority.Handshake(request.Nonce)
}

// prove answers with the HMAC over what the server knows of itself and of this
// very connection. The endpoint has to be the server's own, so that a proof
// obtained through another address is worth nothing (O-001.10).
func (s *Server) prove(_ context.Context, r *http.Request, body []byte) (any, error) {
	request, err := decode[wire.ProveRequest](body)
	if err != nil {
		return nil, err
	}
	challenge, err := base64.StdEncoding.DecodeString(request.Challenge)
	if err != nil || len(challenge) != wire.MaxChallengeBytes {
		return nil, badRequest("the challenge is not base64 of the exact length")
	}
	if request.Endpoint != s.endpoint {
		return nil, badRequest("another endpoint was dialed than this server's")
	}
	exporter, err := r.TLS.ExportKeyingMaterial(wire.TLSExporterLabel, nil, wire.TLSExporterBytes)
	if err != nil {
		return nil, fmt.Errorf("export keying material: %w", err)
	}
	self := s.describe()
	answer, err := s.cfg.Authority.Prove(credential.Statement{
		Challenge:       challenge,
		RotationID:      request.RotationID,
		Home:            s.cfg.Home,
		Endpoint:        s.endpoint,
		ServerIdentity:  self.ServerIdentity,
		Capabilities:    self.Capabilities,
		UnownedPeriodMS: self.UnownedPeriodMS,
		Exporter:        exporter,
	})
	if err != nil {
		return nil, err
	}
	return wire.ProveResponse{Answer: base64.StdEncoding.EncodeToString(answer), Identity: self}, nil
}

func (s *Server) rotate(ctx context.Context, r *http.Request, _ []byte) (any, error) {
	issued, err := s.cfg.Authority.Rotate(ctx, bearer(r))
	if err != nil {
		return nil, err
	}
	s.cfg.Logger.Info("credential rotated", zap.Uint64("rotation_id", issued.RotationID))
	return issued, nil
}

func (s *Server) confirm(_ context.Context, r *http.Request, body []byte) (any, error) {
	request, err := decode[wire.ConfirmRequest](body)
	if err != nil {
		return nil, err
	}
	driving, err := s.cfg.Authority.Confirm(bearer(r), request.RotationID)
	if err != nil {
		return nil, err
	}
	return wire.ConfirmResponse{RotationID: driving}, nil
}

func (s *Server) claim(_ context.Context, r *http.Request, _ []byte) (any, error) {
	if err := s.cfg.Authority.Claim(bearer(r)); err != nil {
		return nil, err
	}
	return wire.ClaimResponse{UnownedPeriodMS: s.cfg.Authority.Period().Milliseconds()}, nil
}

// shutdown answers once the decision stands; Run carries it out (O-002.9).
func (s *Server) shutdown(_ context.Context, r *http.Request, _ []byte) (any, error) {
	return empty{}, s.cfg.Authority.Shutdown(bearer(r))
}

func (s *Server) details(context.Context, *http.Request, []byte) (any, error) {
	return wire.Details{
		Home:              s.cfg.Home,
		DiagnosticLogPath: s.cfg.LogPath,
		PID:               os.Getpid(),
		Adjustments:       s.cfg.Adjustments,
	}, nil
}
