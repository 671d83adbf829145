package boot

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/userapi"
)

// W-8: a request that comes before the first attempt to reach Postgres is told
// what is waited for, like every later one.
func TestTheFirstStatusSaysWhatIsWaitedFor(t *testing.T) {
	h, err := home.Open(filepath.Join(t.TempDir(), "home"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	first := newStatus(Config{Home: h}).page()
	require.Equal(t, userapi.PhaseWaitingPostgres, first.Phase)
	require.Equal(t, "Postgres", first.WaitingFor)
}
