package wire

// Identity is what anybody may know of a control server (O-001.11).
type Identity struct {
	ServerIdentity  string   `json:"server_identity"`
	Capabilities    []string `json:"capabilities"`
	UnownedPeriodMS int64    `json:"unowned_period_ms"`
}

// HandshakeRequest exchanges the bootstrap nonce, once, for the first
// credential.
type HandshakeRequest struct {
	Nonce string `json:"nonce"`
}

// Issued is a credential that the server has just issued, by handshake or
// rotation. RotationID strictly increases; a handshake issues id 1.
type Issued struct {
	Credential      string `json:"credential"`
	RotationID      uint64 `json:"rotation_id"`
	UnownedPeriodMS int64  `json:"unowned_period_ms"`
}

// ProveRequest asks the server to prove that it holds the credential of a
// rotation. Challenge is base64 of 32 fresh random bytes; RotationID is not
// secret.
type ProveRequest struct {
	Challenge  string `json:"challenge"`
	RotationID uint64 `json:"rotation_id"`
	Endpoint   string `json:"endpoint"` // host:port as dialed
}

// ProveResponse carries the answer (base64 HMAC) and the fields that it
// covers beyond those that both sides know.
type ProveResponse struct {
	Answer   string   `json:"answer"`
	Identity Identity `json:"identity"`
}

// ConfirmRequest names the rotation whose credential is durably stored.
type ConfirmRequest struct {
	RotationID uint64 `json:"rotation_id"`
}

// ConfirmResponse says which rotation drives now.
type ConfirmResponse struct {
	RotationID uint64 `json:"rotation_id"`
}

// ClaimResponse answers a renewal.
type ClaimResponse struct {
	UnownedPeriodMS int64 `json:"unowned_period_ms"`
}

// Memory is what a server's process holds, right after a garbage collection.
type Memory struct {
	LiveHeapBytes uint64 `json:"live_heap_bytes"`
	Goroutines    int    `json:"goroutines"`
}

// Details is the authenticated description of a server.
type Details struct {
	Home              string   `json:"home"`
	DiagnosticLogPath string   `json:"diagnostic_log_path"`
	PID               int      `json:"pid"`
	Adjustments       []string `json:"adjustments,omitempty"`
}
