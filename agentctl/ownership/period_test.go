package ownership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// O-003.4, O-003.6, O-003.7: half the idle timeout where reaping would come
// first, the floor last; every adjustment is recorded.
func TestResolvePeriod(t *testing.T) {
	for name, test := range map[string]struct {
		configured, idle, want time.Duration
		adjustments            int
	}{
		"defaults":                   {10 * time.Minute, time.Hour, 10 * time.Minute, 0},
		"just shorter than idle":     {10*time.Minute - 1, 10 * time.Minute, 10*time.Minute - 1, 0},
		"as long as idle":            {10 * time.Minute, 10 * time.Minute, 5 * time.Minute, 1},
		"longer than idle":           {time.Hour, 10 * time.Minute, 5 * time.Minute, 1},
		"reaping off":                {48 * time.Hour, 0, 48 * time.Hour, 0},
		"below the floor":            {time.Second, time.Hour, time.Minute, 1},
		"the floor":                  {time.Minute, time.Hour, time.Minute, 0},
		"floor wins over idle":       {10 * time.Minute, 90 * time.Second, time.Minute, 2},
		"floor although reaping off": {time.Second, 0, time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			period, adjustments := ResolvePeriod(test.configured, test.idle)
			require.Equal(t, test.want, period)
			require.Len(t, adjustments, test.adjustments)
		})
	}
}
