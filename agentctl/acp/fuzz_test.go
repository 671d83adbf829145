package acp

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// discard is an agent's input that takes everything.
type discard struct{ io.Writer }

func (discard) Close() error { return nil }

// FuzzTap, B-9: whatever an agent writes before and after a frame, the tap comes
// to its end, records the frame once, and nothing but valid payloads.
func FuzzTap(f *testing.F) {
	for _, seed := range []string{
		"", "noise\n", "\x1b[0m", "\r\n\r\n", "[1,2", "\"", "\\", "\xff\xfe", "\x00",
		`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"options":[]}}` + "\n",
		`{"jsonrpc":"2.0","id":1073741824,"result":{"stopReason":"x"}}` + "\n",
		`{"id":1e999,"error":{"code":"x"}}` + "\n" + `{"a":{"b":`,
	} {
		f.Add([]byte(seed), []byte(seed))
	}
	const marker = `{"jsonrpc":"2.0","method":"session/update","params":{"marker":[true]}}`
	f.Fuzz(func(t *testing.T, before, after []byte) {
		// A frame within an open object is that object's content.
		last := before[bytes.LastIndexByte(before, '\n')+1:]
		if bytes.ContainsAny(last, "{") || bytes.ContainsAny(after, "{") || bytes.Contains(before, []byte("marker")) {
			after = nil
			before = append(before, '\n')
		}
		output := append(append(append([]byte(nil), before...), marker...), after...)
		n := newNotes()
		a := Open(Config{
			Stdin: discard{io.Discard}, Stdout: bytes.NewReader(output), Recorder: n, Logger: zap.NewNop(),
			Clock: func() time.Time { return epoch }, Hooks: Hooks{TurnEnded: func(wire.TurnOutcome) {}},
		})
		a.Close()
		var markers int
		for _, e := range n.all() {
			require.True(t, json.Valid(e.Payload), "%s %q", e.Kind, e.Payload)
			require.True(t, utf8.Valid(e.Payload), "%s %q", e.Kind, e.Payload)
			if e.Kind == wire.EventUpdate && string(e.Payload) == `{"marker":[true]}` {
				markers++
			}
		}
		require.GreaterOrEqual(t, markers, 1)
	})
}
