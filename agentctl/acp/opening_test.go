package acp

import (
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/stretchr/testify/require"
)

// Once the conversation is open the SDK is gone; what it would have refused is
// refused all the same, an answer to nobody is dropped, and turns go on.
func TestSDKEndsWithTheOpening(t *testing.T) {
	s := open(t)
	s.eventually(s.agent.ended)
	s.say(`{"jsonrpc":"2.0","id":"late","result":{}}` + "\n")
	s.refusesAndGoesOn("terminal/create")
}

// An idle agent costs a part of a MiB; the SDK's buffers alone are more. It runs
// beside no other test of the package.
func TestIdleAgentIsSmall(t *testing.T) {
	const agents, bound = 20, 400 << 10
	before := liveHeap()
	for range agents {
		s := open(t)
		s.eventually(s.agent.ended)
	}
	require.Less(t, liveHeap(), before+agents*bound)
}

func liveHeap() uint64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
