package fakeagent

import (
	"strconv"
	"strings"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
)

// What a measurement relies on: numbers without holes, the time of the write, and
// the size that was asked for.
func TestFlood(t *testing.T) {
	d := spawnAgent(t, newHome(t))
	asked := time.Now()
	resp, err := d.prompt(d.open(), "say first; flood 50 size 300B every 1ms after 3ms; say last")
	require.NoError(t, err)
	require.Equal(t, acp.StopReasonEndTurn, resp.StopReason)
	require.Equal(t, upTo(52), d.numbers())
	earlier := asked.Add(2 * time.Millisecond).UnixNano() // that long after, at least
	for _, text := range d.texts()[1:51] {
		u, ok := ParseUpdate(text)
		require.True(t, ok)
		stamp, _, _ := strings.Cut(u.Text, " ")
		at, err := strconv.ParseInt(stamp, 10, 64)
		require.NoError(t, err)
		require.Greater(t, at, earlier)
		earlier = at
		before, after := floodFrame("fake-0123456789abcdef")
		require.Len(t, before[floodMethod:]+text+after[:len(after)-2], 300)
	}
}

func TestFloodRefuses(t *testing.T) {
	for _, script := range []string{"flood", "flood 0", "flood x", "flood 1 size 10B", "flood 1 every", "flood 1 often 3"} {
		_, err := parseScript(script)
		require.Error(t, err, script)
	}
}
