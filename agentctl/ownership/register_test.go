package ownership

import (
	"time"

	"github.com/kandev/recovery/agentctl/wire"
)

// register is what an authority must hold and answer, written down plainly.
// Credentials are known by the rotation that issued them; zero is a stranger's.
type register struct {
	newest     uint64
	superseded uint64 // zero once it was confirmed away
	ended      bool

	renewed, graceUntil time.Time
}

func (r *register) standing(k uint64) wire.Code {
	switch {
	case k == 0:
		return wire.CodeUnauthenticated
	case k != r.newest:
		return wire.CodeSuperseded
	case r.ended:
		return wire.CodeShuttingDown
	default:
		return ""
	}
}

func (r *register) acceptable(k uint64) bool {
	return k != 0 && (k == r.newest || k == r.superseded)
}

// rotate returns the rotation that is answered.
func (r *register) rotate(k uint64, now time.Time) (uint64, wire.Code) {
	if !r.acceptable(k) {
		return 0, r.standing(k)
	}
	if r.ended {
		return 0, wire.CodeShuttingDown
	}
	if k == r.newest {
		r.newest, r.superseded = k+1, k
	}
	r.renewed = now
	return r.newest, ""
}

func (r *register) confirm(k, named uint64) (uint64, wire.Code) {
	switch code := r.standing(k); {
	case code != "" && code != wire.CodeShuttingDown:
		return 0, code
	case named == 0 || named > r.newest:
		return 0, wire.CodeUnknownRotation
	case code != "":
		return 0, code
	case named == r.newest:
		r.superseded = 0
	}
	return r.newest, ""
}

func (r *register) claim(k uint64, now time.Time) wire.Code {
	code := r.standing(k)
	if code == "" {
		r.renewed = now
	}
	return code
}

func (r *register) shutdown(k uint64) wire.Code {
	if !r.acceptable(k) {
		return r.standing(k)
	}
	r.ended = true
	return ""
}

// judge is one look at the age of the last renewal, late after the moment it
// was due.
func (r *register) judge(now time.Time, late time.Duration) {
	if late > period/renewalsPerPeriod/checksPerInterval {
		r.graceUntil = now.Add(period / renewalsPerPeriod)
	}
	if now.Sub(r.renewed) >= period && !now.Before(r.graceUntil) {
		r.ended = true
	}
}
