package integration

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/demo"
	"github.com/kandev/recovery/userapi"
)

// prattle is in everything that an agent writes which is no frame.
const prattle = "zanzibar-kumquat"

// strayFrame is an update that no record of the agent knows.
const strayFrame = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` +
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"stray %s"}}}}`

// outpourings are what agents were seen to write between, before and after their
// frames, none of which ends the line that a frame follows on.
var outpourings = []string{
	"\xff\xfe " + prattle + " \x80\xbf\n",
	`{"jsonrpc":"2.0","method":"session/update","params":{` + prattle + "\n",
	`{"` + prattle + `":"is no message"}` + "\r\n\r\n\n \t\n",
	"\x00\x00" + prattle + "\x00\n",
	"\x1b[2J\x1b[31;1m" + prattle + "\x1b[0m",
	"\x1b]0;" + prattle + "\x07{",
	strings.Repeat(prattle+" ", 2_000) + "\n",
}

// B-9, B-1: what is no frame, before, between and glued to frames, invalid UTF-8
// and JSON, other line ends, and frames that come in many pieces cost no frame and
// change no order, attached or not; and nothing of it reaches the transcript or a
// log. Invalid UTF-8 within a frame costs just those bytes.
func TestNoiseCostsNoFrame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start().serving()
	a := w.agent("rants")
	a.prompt("one", rant()+"; wait file go; "+rant())
	w.eventually("it has ranted", func() bool { return a.produced().Updates == frames })
	w.backend.kill()
	a.touch("go")
	w.eventually("the turn ends", func() bool { return a.produced().Ends == 1 })
	w.start().serving()
	a.ended("one")

	var events []userapi.Event
	want := demo.Tally{Produced: 2*frames + 1, Committed: 2*frames + 1 + 4, Foreign: 4}
	w.eventually("everything is committed", func() bool {
		events = a.transcript()
		return demo.Compare(a.produced(), events) == want
	})
	require.Equal(t, 1, a.turnsEnded())
	bytes, strays := 0, 0
	for _, e := range events {
		require.NotContains(t, string(e.Payload), prattle)
		switch wire.EventKind(e.Kind) {
		case wire.EventNoise:
			var noise wire.Noise
			require.NoError(t, json.Unmarshal(e.Payload, &noise))
			bytes += noise.Bytes
		case wire.EventUpdate:
			if strings.Contains(string(e.Payload), `"text":"stray `+"\uFFFD("+`"`) {
				strays++
			}
		}
	}
	require.Equal(t, 2, strays)
	require.Greater(t, bytes, 2*2_000*len(prattle))
	for name, text := range w.logs() {
		require.NotContains(t, text, prattle, name)
	}
}

// frames is how many numbered updates are in a rant.
var frames = 3 * (len(outpourings) + 1)

// rant is a script that writes frames between everything else, whole and then in
// pieces.
func rant() string {
	raw := func(text string) string { return "raw " + base64.StdEncoding.EncodeToString([]byte(text)) }
	var steps []string
	for _, size := range []string{"1MB", "7B", "1B"} {
		steps = append(steps, "pieces "+size)
		for _, text := range outpourings {
			steps = append(steps, raw(text), "stream 1")
		}
		steps = append(steps, "crlf", "stream 1")
	}
	// Two messages in one line, and one with bytes that are no UTF-8.
	steps = append(steps, raw(fmt.Sprintf(strayFrame, "twin")+fmt.Sprintf(strayFrame, "\xc3\x28")+"\n"))
	return strings.Join(steps, "; ")
}
