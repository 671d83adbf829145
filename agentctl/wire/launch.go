package wire

// StartConfig is the first line that a parent writes to the standard input of
// a new control server, as JSON. It carries everything that must not be in
// arguments or environment.
type StartConfig struct {
	Nonce            string `json:"nonce"` // one-time, for the handshake
	Home             string `json:"home"`
	Host             string `json:"host"`
	Port             int    `json:"port"` // preferred; another is taken if it is in use on either loopback family
	Detached         bool   `json:"detached"`
	UnownedPeriodMS  int64  `json:"unowned_period_ms"`
	IdleTimeoutMS    int64  `json:"idle_timeout_ms"` // 0: no idle reaping
	EventLimit       int    `json:"event_limit"`     // 1 to 10,000
	BytesPerInstance int64  `json:"bytes_per_instance,omitempty"`
	BytesOverall     int64  `json:"bytes_overall,omitempty"`
	// LogName is the name of its log below the home directory, in letters and
	// hyphens; empty means "agentctl". Two servers of one home need two.
	LogName string `json:"log_name,omitempty"`
}

// RecordedLine is what the parent writes to standard input once the server is
// durably recorded. If standard input ends before it, the server exits (B-26).
const RecordedLine = "recorded"

// Ready is the line, as JSON, that a new control server writes to its ready
// pipe (descriptor 3) once it listens, or once it cannot.
type Ready struct {
	Endpoint       string `json:"endpoint,omitempty"`    // host:port
	Fingerprint    string `json:"fingerprint,omitempty"` // hex SHA-256 of its certificate
	ServerIdentity string `json:"server_identity,omitempty"`
	PID            int    `json:"pid,omitempty"`
	Error          *Error `json:"error,omitempty"`
}
