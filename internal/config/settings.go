package config

import "time"

// Settings are the backend's settings, valid and complete.
type Settings struct {
	Home           string        // as configured; internal/home resolves it
	DatabaseDSN    Secret        // empty: none configured
	ServerAddress  string        // host:port, loopback
	AgentSurvival  bool          // features.agentSurvival (S-005.2)
	LaunchDeadline time.Duration // 5s to 1h
	Agentctl       Agentctl
	File           string // that was read; empty if none
}

// Agentctl are the settings about the control server.
type Agentctl struct {
	Host               string // never an unspecified address (O-001.12)
	Port               int
	Executable         string
	RecoveryDeadline   time.Duration // 1s to 5m (S-003.7)
	ReadTimeout        time.Duration // at least 100ms (S-002.13)
	ReadRetries        int           // 0 to 10 (S-002.13)
	UnownedPeriod      time.Duration // the control server adjusts it (O-003.4, O-003.7)
	IdleTimeout        time.Duration // 0: no idle reaping (O-003.6)
	DetachedEventLimit int           // 1 to 10,000 (S-001.8)
}

// Secret is a value that is never printed.
type Secret string

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return "(not set)"
	}
	return "(set, not shown)"
}

// GoString hides the value.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }
