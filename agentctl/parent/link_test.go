package parent_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kandev/recovery/agentctl/parent"
	"github.com/kandev/recovery/agentctl/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes are the parent's ends of a link.
type pipes struct {
	stdin *os.File // to the child
	ready *os.File // from the child
}

func open(t *testing.T) (*parent.Link, pipes) {
	t.Helper()
	stdin, toChild, err := os.Pipe()
	require.NoError(t, err)
	fromChild, ready, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, f := range []*os.File{stdin, toChild, fromChild, ready} {
			f.Close()
		}
	})
	return parent.Open(stdin, ready), pipes{stdin: toChild, ready: fromChild}
}

func write(t *testing.T, to *os.File, text string) {
	t.Helper()
	_, err := io.WriteString(to, text)
	require.NoError(t, err)
}

// The configuration and what follows come over the same pipe, also in one
// write.
func TestConfigThenRecorded(t *testing.T) {
	link, p := open(t)
	write(t, p.stdin, `{"nonce":"n","event_limit":7,"a_newer_field":1}`+"\n"+wire.RecordedLine+"\n")
	config, err := link.Config()
	require.NoError(t, err)
	require.Equal(t, wire.StartConfig{Nonce: "n", EventLimit: 7}, config)
	require.NoError(t, link.Follow(true))
	_, err = io.WriteString(p.stdin, "anybody there?")
	require.Error(t, err, "a detached server has let go of its standard input")
}

// S-001.8: a number that is not whole is refused, not rounded.
func TestConfigIsRefused(t *testing.T) {
	for name, line := range map[string]string{
		"not JSON":   "start\n",
		"a fraction": `{"event_limit":1.5}` + "\n",
		"no line":    `{"nonce":"n"}`,
		"too long":   `{"nonce":"` + strings.Repeat("n", 1<<16) + `"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stdin")
			require.NoError(t, os.WriteFile(file, []byte(line), 0o600))
			stdin, err := os.Open(file)
			require.NoError(t, err)
			defer stdin.Close()
			_, err = parent.Open(stdin, nil).Config()
			require.Error(t, err)
		})
	}
}

// The ready line is one line, and the pipe is closed after it.
func TestReady(t *testing.T) {
	link, p := open(t)
	want := wire.Ready{Endpoint: "127.0.0.1:1", Fingerprint: "f", ServerIdentity: "s", PID: 3}
	require.NoError(t, link.Ready(want))
	raw, err := io.ReadAll(p.ready)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(raw), "\n"))
	var got wire.Ready
	require.NoError(t, json.Unmarshal(raw, &got))
	require.Equal(t, want, got)
}

// B-26: the end of standard input before the recorded line, or anything else
// than that line, ends the server.
func TestNeverRecorded(t *testing.T) {
	for _, text := range []string{"", "recor", "something else\n"} {
		link, p := open(t)
		write(t, p.stdin, text)
		require.NoError(t, p.stdin.Close())
		require.ErrorIs(t, link.Follow(true), parent.ErrUnrecorded)
	}
}

// S-005.1: a bound server ends when its parent does, and not before.
func TestBound(t *testing.T) {
	link, p := open(t)
	ended := make(chan error, 1)
	go func() { ended <- link.Follow(false) }()
	write(t, p.stdin, wire.RecordedLine+"\nwhatever\n")
	require.Empty(t, ended)
	require.NoError(t, p.stdin.Close())
	require.ErrorIs(t, <-ended, parent.ErrEnded)
}

// S-001.8: whole, 1 to 10,000, never clamped; the other values likewise.
func TestValidate(t *testing.T) {
	good := wire.StartConfig{
		Nonce: "n", Home: "/home/of/it", Host: "127.0.0.1", Port: 39429,
		UnownedPeriodMS: 600_000, IdleTimeoutMS: 0, EventLimit: 100,
	}
	require.NoError(t, parent.Validate(good))
	for name, change := range map[string]func(*wire.StartConfig){
		"least events": func(c *wire.StartConfig) { c.EventLimit = 1 },
		"most events":  func(c *wire.StartConfig) { c.EventLimit = 10_000 },
		"any port":     func(c *wire.StartConfig) { c.Port = 0 },
		"log name":     func(c *wire.StartConfig) { c.LogName = "agentctl-other" },
	} {
		c := good
		change(&c)
		require.NoError(t, parent.Validate(c), name)
	}
	for name, change := range map[string]func(*wire.StartConfig){
		"no events":          func(c *wire.StartConfig) { c.EventLimit = 0 },
		"too many events":    func(c *wire.StartConfig) { c.EventLimit = 10_001 },
		"no nonce":           func(c *wire.StartConfig) { c.Nonce = "" },
		"relative home":      func(c *wire.StartConfig) { c.Home = "home" },
		"no host":            func(c *wire.StartConfig) { c.Host = "" },
		"negative port":      func(c *wire.StartConfig) { c.Port = -1 },
		"large port":         func(c *wire.StartConfig) { c.Port = 65_536 },
		"no period":          func(c *wire.StartConfig) { c.UnownedPeriodMS = 0 },
		"endless period":     func(c *wire.StartConfig) { c.UnownedPeriodMS = 1 << 62 },
		"negative idle":      func(c *wire.StartConfig) { c.IdleTimeoutMS = -1 },
		"endless idle":       func(c *wire.StartConfig) { c.IdleTimeoutMS = 1 << 62 },
		"negative bytes":     func(c *wire.StartConfig) { c.BytesPerInstance = -1 },
		"negative all bytes": func(c *wire.StartConfig) { c.BytesOverall = -1 },
		"log elsewhere":      func(c *wire.StartConfig) { c.LogName = "../backend" },
	} {
		c := good
		change(&c)
		var refusal *wire.Error
		require.ErrorAs(t, parent.Validate(c), &refusal, name)
		require.Equal(t, wire.CodeBadRequest, refusal.Code)
		require.NotContains(t, refusal.Message, good.Home)
	}
}
