package instance

import "sync"

// stderrBytes bounds what is kept of an agent's standard error (B-10).
const stderrBytes = 64 << 10

// tail keeps the newest bytes written to it and never blocks a writer. It is
// evidence for whoever debugs the control server; it never leaves it raw.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b[max(0, len(b)-stderrBytes):]...)
	if over := len(t.kept) - stderrBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}
