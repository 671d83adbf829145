package server_test

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// B-8, B-9: frames of 9, 11 and 40 MiB of an agent's process go by in bounded
// memory and leave a marked truncation each, in their place; the connection goes
// on, with small frames after each and a large one that is kept whole. Not
// parallel, because it looks at the heap.
func TestOversizedFrames(t *testing.T) {
	r := startWith(t, setup{bytes: 16 << 20})
	c, _ := r.own(t)
	createReady(t, c, "i", nil)
	peak := heapPeak(func() {
		_, err := c.Prompt(t.Context(), "i", "k", say("sizes 9 11 40"))
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			kept, err := c.TurnOutcome(t.Context(), "i")
			return err == nil && kept.Outcome != nil && kept.Outcome.StopReason == "end_turn"
		}, slow, 20*time.Millisecond)
	})
	require.Less(t, peak, int64(36<<20), "a frame is held whole")
	_, err := c.Prompt(t.Context(), "i", "k2", say("sizes 7"))
	require.NoError(t, err)

	want := []string{
		"turn_started", "truncated update of 9 MiB", "after 9", "truncated update of 11 MiB", "after 11",
		"truncated update of 40 MiB", "after 40", "turn_ended",
		"turn_started", "7 MiB", "after 7", "turn_ended",
	}
	stream := attach(t, c, "i", 0)
	var said []string
	for len(said) < len(want) {
		for _, e := range commitAll(t, stream, wire.EventTurnEnded) {
			said = append(said, inWords(t, e))
		}
	}
	require.Equal(t, want, said)
}

// inWords is what a test expects of an event.
func inWords(t *testing.T, e wire.Event) string {
	t.Helper()
	switch e.Kind {
	case wire.EventTruncated:
		var cut wire.Truncated
		require.NoError(t, json.Unmarshal(e.Payload, &cut))
		return fmt.Sprintf("truncated %s of %d MiB", cut.Kind, cut.Bytes>>20)
	case wire.EventUpdate:
		var said struct {
			Update struct {
				Content struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"update"`
		}
		require.NoError(t, json.Unmarshal(e.Payload, &said))
		if mib := len(said.Update.Content.Text) >> 20; mib > 0 {
			return fmt.Sprintf("%d MiB", mib)
		}
		return said.Update.Content.Text
	default:
		return string(e.Kind)
	}
}

// heapPeak is by how much the heap grows while f runs, at most.
func heapPeak(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	debug.FreeOSMemory()
	before := heap()
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for {
			most = max(most, heap())
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	return <-peak - before
}

func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
