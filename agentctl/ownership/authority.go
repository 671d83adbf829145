package ownership

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// renewalsPerPeriod is how often an owner renews within an unowned period
// (O-003.2).
const renewalsPerPeriod = 4

// retiredKept bounds how many credentials are remembered as having driven once.
const retiredKept = 1024

// Config is what an Authority starts with.
type Config struct {
	Nonce  string           // exchanged once for the first credential
	Period time.Duration    // unowned period in force, positive
	Clock  func() time.Time // monotonic, as time.Now is
}

// Authority holds the credentials that are acceptable now: the newest one, and
// until its confirmation the one that it supersedes (O-002.8).
type Authority struct {
	period time.Duration
	clock  func() time.Time

	mu         sync.Mutex
	nonce      string // empty once exchanged
	current    issue
	superseded issue // empty once the current one is confirmed
	retired    retired
	admitted   map[*Admission]struct{}

	renewed    time.Time // the last renewal
	graceUntil time.Time // no expiry before it (B-13)

	reason   Reason
	shutdown chan struct{} // closed by the one-way decision
}

// issue is one credential and the rotation that issued it.
type issue struct {
	token string
	id    uint64
}

func (i issue) is(token string) bool { return i.token != "" && credential.Equal(i.token, token) }

// New returns an Authority without a credential, whose unowned period counts
// from now (O-003.8).
func New(cfg Config) *Authority {
	return &Authority{
		period:   cfg.Period,
		clock:    cfg.Clock,
		nonce:    cfg.Nonce,
		admitted: make(map[*Admission]struct{}),
		renewed:  cfg.Clock(),
		shutdown: make(chan struct{}),
	}
}

// Period is the unowned period in force.
func (a *Authority) Period() time.Duration { return a.period }

// RenewalInterval is how often an owner is expected to renew.
func (a *Authority) RenewalInterval() time.Duration { return a.period / renewalsPerPeriod }

// standing is what a presented credential is now. The caller holds the lock.
type standing int

const (
	unknown standing = iota
	retiredCredential
	supersededCredential
	newest
)

func (a *Authority) standing(token string) standing {
	switch {
	case token == "":
		return unknown
	case a.current.is(token):
		return newest
	case a.superseded.is(token):
		return supersededCredential
	case a.retired.has(token):
		return retiredCredential
	default:
		return unknown
	}
}

// requireNewest refuses everything but the newest credential (O-002.6). The
// caller holds the lock.
func (a *Authority) requireNewest(token string) error {
	switch a.standing(token) {
	case newest:
		return nil
	case unknown:
		return errUnauthenticated()
	default:
		return errSuperseded()
	}
}

// requireAcceptable refuses what is neither the newest credential nor the one
// that it supersedes, unconfirmed (O-002.7). The caller holds the lock.
func (a *Authority) requireAcceptable(token string) error {
	switch a.standing(token) {
	case newest, supersededCredential:
		return nil
	case retiredCredential:
		return errSuperseded()
	default:
		return errUnauthenticated()
	}
}

// retired remembers credentials by their digest, so that their holders are told
// that they were superseded rather than that they are strangers (O-002.3).
type retired struct {
	order [][sha256.Size]byte
	known map[[sha256.Size]byte]struct{}
}

func (r *retired) has(token string) bool {
	_, ok := r.known[sha256.Sum256([]byte(token))]
	return ok
}

func (r *retired) add(token string) {
	if token == "" {
		return
	}
	if r.known == nil {
		r.known = make(map[[sha256.Size]byte]struct{})
	}
	if len(r.order) == retiredKept {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
	digest := sha256.Sum256([]byte(token))
	r.order = append(r.order, digest)
	r.known[digest] = struct{}{}
}

func errUnauthenticated() error {
	return &wire.Error{Code: wire.CodeUnauthenticated, Message: "no acceptable credential was presented"}
}

func errSuperseded() error {
	return &wire.Error{
		Code:    wire.CodeSuperseded,
		Message: "a newer credential drives this control server",
		Remedy:  "adopt the control server again before any further request",
	}
}

func errShuttingDown() error {
	return &wire.Error{Code: wire.CodeShuttingDown, Message: "the control server is shutting down"}
}
