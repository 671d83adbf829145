package parent

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"time"

	"github.com/kandev/recovery/agentctl/wire"
)

// Bounds of the number of events kept per instance while detached (S-001.8).
const (
	MinEventLimit = 1
	MaxEventLimit = 10_000
)

// logName keeps a log in the directory of logs.
var logName = regexp.MustCompile(`^[a-z-]*$`)

const (
	maxPort         = 65_535
	maxMilliseconds = math.MaxInt64 / int64(time.Millisecond)
)

// Validate refuses a configuration with a value out of its range, naming the
// value and never changing it (S-001.8). The error is a *wire.Error.
func Validate(c wire.StartConfig) error {
	switch {
	case c.Nonce == "":
		return invalid("nonce is missing")
	case !filepath.IsAbs(c.Home):
		return invalid("home is not an absolute path")
	case c.Host == "":
		return invalid("host is missing")
	case c.Port < 0 || c.Port > maxPort:
		return invalid("port %d is outside 0 to %d", c.Port, maxPort)
	case c.EventLimit < MinEventLimit || c.EventLimit > MaxEventLimit:
		return invalid("event_limit %d is outside %d to %d", c.EventLimit, MinEventLimit, MaxEventLimit)
	case c.UnownedPeriodMS < 1 || c.UnownedPeriodMS > maxMilliseconds:
		return invalid("unowned_period_ms %d is outside 1 to %d", c.UnownedPeriodMS, maxMilliseconds)
	case c.IdleTimeoutMS < 0 || c.IdleTimeoutMS > maxMilliseconds:
		return invalid("idle_timeout_ms %d is outside 0 to %d", c.IdleTimeoutMS, maxMilliseconds)
	case c.BytesPerInstance < 0:
		return invalid("bytes_per_instance %d is negative", c.BytesPerInstance)
	case c.BytesOverall < 0:
		return invalid("bytes_overall %d is negative", c.BytesOverall)
	case !logName.MatchString(c.LogName):
		return invalid("log_name is not of letters and hyphens")
	default:
		return nil
	}
}

func invalid(format string, args ...any) error {
	return &wire.Error{Code: wire.CodeBadRequest, Message: fmt.Sprintf(format, args...)}
}
