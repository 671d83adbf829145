package workflows_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kandev/recovery/internal/stack/temporaltest"
)

// abandonedAttempt is what the SDK's test environment leaves of an activity whose
// workflow ended while it waited for another attempt.
var abandonedAttempt = goleak.IgnoreTopFunction("go.temporal.io/sdk/internal.(*testWorkflowEnvironmentImpl).executeActivityWithRetryForTest")

// TestMain ends the shared server, and fails a run that left a goroutine.
func TestMain(m *testing.M) {
	code := temporaltest.Main(m)
	if err := goleak.Find(abandonedAttempt); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
