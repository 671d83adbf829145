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

// BenchmarkAppendTogether commits events with payloads of 300 bytes, the batches of
// several sessions in one transaction or each in its own, on a database that does
// not wait for its disk.
func BenchmarkAppendTogether(b *testing.B) {
	for _, sessions := range []int{1, 5, 50} {
		for _, size := range []int{1, 20} {
			for _, shared := range []bool{false, true} {
				b.Run(fmt.Sprintf("sessions=%d/events=%d/shared=%v", sessions, size, shared), func(b *testing.B) {
					appendTogether(b, sessions, size, shared)
				})
			}
		}
	}
}

func appendTogether(b *testing.B, sessions, size int, shared bool) {
	s, ctx, inst := storetest.Open(b), b.Context(), "inst"
	require.NoError(b, s.EnsureInstallation(ctx, inst))
	require.NoError(b, s.PutProfile(ctx, inst, store.Profile{ID: "p"}))
	batches := make([]store.Batch, sessions)
	payload := json.RawMessage(`{"text":"` + strings.Repeat("x", 290) + `"}`)
	next := func() {
		for i := range batches {
			events := batches[i].Events
			for j := range events {
				events[j] = store.EventRow{Seq: events[j].Seq + int64(size), Kind: "update", At: time.Now(), Payload: payload}
			}
		}
	}
	for i := range batches {
		sess, err := s.CreateSession(ctx, store.NewSession{Installation: inst, ProfileID: "p"})
		require.NoError(b, err)
		batches[i] = store.Batch{
			Installation: inst, SessionID: sess.ID, InstanceID: fmt.Sprint("i", i), Events: make([]store.EventRow, size),
		}
		for j := range size {
			batches[i].Events[j].Seq = int64(j + 1)
		}
		_, err = s.CommitEvents(ctx, batches[i])
		require.NoError(b, err)
	}
	transactions := [][]store.Batch{batches}
	if !shared {
		transactions = nil
		for i := range batches {
			transactions = append(transactions, batches[i:i+1])
		}
	}
	for b.Loop() {
		next()
		for _, transaction := range transactions {
			appended, err := s.AppendTogether(ctx, transaction)
			require.NoError(b, err)
			require.NotContains(b, appended, false)
		}
	}
	b.ReportMetric(float64(b.N*sessions*size)/b.Elapsed().Seconds(), "events/s")
}
