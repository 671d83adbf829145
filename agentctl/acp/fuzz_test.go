package acp

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// discard is an agent's input that takes everything.
type discard struct{ io.Writer }

func (discard) Close() error { return nil }

// FuzzTap, B-9: whatever an agent writes before and after a frame, in however many
// pieces, the tap comes to its end, records the frame, and nothing but valid
// payloads; the pieces make no difference.
func FuzzTap(f *testing.F) {
	for _, seed := range []string{
		"", "noise\n", "\x1b[0m", "\x1b[2K\r\x1b[32m{", "\r\n\r\n", "\r",
		`{"jsonrpc":"2.0","method":"session/update","params":{"n":123456789012345678901234567890e400,"s":"\u0000\ud800"}}` + "\r\n", "[1,2", "\"", "\\", "\xff\xfe", "\x00",
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
		recorded := tapped(bytes.NewReader(output))
		require.Equal(t, unnamed(recorded), unnamed(tapped(iotest.OneByteReader(bytes.NewReader(output)))))
		var markers int
		for _, e := range recorded {
			require.True(t, json.Valid(e.Payload), "%s %q", e.Kind, e.Payload)
			require.True(t, utf8.Valid(e.Payload), "%s %q", e.Kind, e.Payload)
			if e.Kind == wire.EventUpdate && string(e.Payload) == `{"marker":[true]}` {
				markers++
			}
		}
		require.GreaterOrEqual(t, markers, 1)
	})
}

// tapped is what the tap records of an agent's output.
func tapped(output io.Reader) []wire.Event {
	n := newNotes()
	a := Open(Config{
		Stdin: discard{io.Discard}, Stdout: output, Recorder: n, Logger: zap.NewNop(),
		Clock: func() time.Time { return epoch }, Hooks: Hooks{TurnEnded: func(wire.TurnOutcome) {}},
	})
	<-a.Done()
	a.Close()
	return n.all()
}

// unnamed leaves out the payloads that name a permission request, whose ids are
// random.
func unnamed(events []wire.Event) []wire.Event {
	events = slices.Clone(events)
	for i, e := range events {
		if e.Kind == wire.EventPermissionRequest || e.Kind == wire.EventPermissionSettled {
			events[i].Payload = nil
		}
	}
	return events
}
