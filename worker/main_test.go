package worker

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kandev/recovery/internal/stack/temporaltest"
)

// TestMain ends the shared server, and fails a run that left a goroutine.
func TestMain(m *testing.M) {
	code := temporaltest.Main(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

const (
	patience = 60 * time.Second // reached only by a failure
	tick     = 20 * time.Millisecond
)
