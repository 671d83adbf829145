package server

import (
	"context"
	"net/http"
	"runtime"
	"runtime/metrics"

	"github.com/kandev/recovery/agentctl/wire"
)

// liveHeap is what the last garbage collection marked as in use.
const liveHeap = "/gc/heap/live:bytes"

func (s *Server) memory(context.Context, *http.Request, []byte) (any, error) {
	runtime.GC()
	live := []metrics.Sample{{Name: liveHeap}}
	metrics.Read(live)
	return wire.Memory{LiveHeapBytes: live[0].Value.Uint64(), Goroutines: runtime.NumGoroutine()}, nil
}
