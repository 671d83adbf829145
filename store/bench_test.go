//go:build unix

package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/store/storetest"
)

// BenchmarkCommitEvents commits batches of events with payloads of 300 bytes,
// on a database that does not wait for its disk.
func BenchmarkCommitEvents(b *testing.B) {
	for _, size := range []int{1, 50, 500} {
		b.Run(fmt.Sprint("batch=", size), func(b *testing.B) {
			s, ctx, inst := storetest.Open(b), b.Context(), "inst"
			require.NoError(b, s.EnsureInstallation(ctx, inst))
			require.NoError(b, s.PutProfile(ctx, inst, store.Profile{ID: "p"}))
			sess, err := s.CreateSession(ctx, store.NewSession{Installation: inst, ProfileID: "p"})
			require.NoError(b, err)
			payload := json.RawMessage(`{"text":"` + strings.Repeat("x", 290) + `"}`)
			seq, events := int64(0), make([]store.EventRow, size)
			for b.Loop() {
				for i := range events {
					seq++
					events[i] = store.EventRow{Seq: seq, Kind: "update", At: time.Now(), Payload: payload}
				}
				_, err := s.CommitEvents(ctx, store.Batch{Installation: inst, SessionID: sess.ID, InstanceID: "i", Events: events})
				require.NoError(b, err)
			}
			b.ReportMetric(float64(seq)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
