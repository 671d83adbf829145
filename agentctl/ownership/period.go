package ownership

import (
	"fmt"
	"time"
)

// MinPeriod is the shortest unowned period (O-003.7).
const MinPeriod = time.Minute

// ResolvePeriod returns the unowned period in force for a configured one. With
// idle reaping on it has to be shorter than the idle timeout, or reaping would
// come first (O-003.4); zero idle means that reaping is off (O-003.6). The
// floor comes last and wins (O-003.7). Each adjustment is described.
func ResolvePeriod(configured, idle time.Duration) (period time.Duration, adjustments []string) {
	period = configured
	if idle > 0 && period >= idle {
		period = idle / 2
		adjustments = append(adjustments, fmt.Sprintf(
			"unowned period %s is not shorter than the idle timeout %s: half the idle timeout, %s, is in force",
			configured, idle, period))
	}
	if period < MinPeriod {
		adjustments = append(adjustments, fmt.Sprintf(
			"unowned period %s is below the minimum: %s is in force", period, MinPeriod))
		period = MinPeriod
	}
	return period, adjustments
}
