package ownership

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kandev/recovery/agentctl/wire"
)

func TestMain(m *testing.M) {
	if err := modelChecks(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// modelChecks asks for more sequences of the model than the library's default,
// unless the environment or a flag says how many.
func modelChecks() error {
	if _, told := os.LookupEnv("RAPID_CHECKS"); told {
		return nil
	}
	return flag.Set("rapid.checks", "300")
}

const (
	nonce  = "the-nonce"
	period = 10 * time.Minute
)

// fakeClock is moved by its test.
type fakeClock struct{ now time.Time }

func (c *fakeClock) Now() time.Time        { return c.now }
func (c *fakeClock) sleep(d time.Duration) { c.now = c.now.Add(d) }

func newAuthority() (*Authority, *fakeClock) {
	clock := &fakeClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return New(Config{Nonce: nonce, Period: period, Clock: clock.Now}), clock
}

// owned returns an authority whose handshake is done, with its first credential.
func owned(t *testing.T) (*Authority, string) {
	t.Helper()
	a, _ := newAuthority()
	issued, err := a.Handshake(nonce)
	require.NoError(t, err)
	return a, issued.Credential
}

func rotate(t *testing.T, a *Authority, token string) wire.Issued {
	t.Helper()
	issued, err := a.Rotate(t.Context(), token)
	require.NoError(t, err)
	return issued
}

func code(err error) wire.Code {
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

func requireCode(t *testing.T, want wire.Code, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want, code(err), err)
}
