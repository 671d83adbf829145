package acp

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// B-9: noise around frames costs no frame; what a log line merely quotes is not
// taken for one.
func TestSplit(t *testing.T) {
	const a, b = `{"jsonrpc":"2.0","method":"session/update","params":{"n":1}}`, `{"id":3,"result":{},"jsonrpc":"2.0"}`
	for name, c := range map[string]struct {
		line   string
		frames []string
		noise  int
	}{
		"frame":               {a, []string{a}, 0},
		"no version":          {`{"method":"session/update","params":{}}`, []string{`{"method":"session/update","params":{}}`}, 0},
		"empty":               {"", nil, 0},
		"text":                {"hello", nil, 5},
		"escape before":       {"\x1b[0m" + a, []string{a}, 4},
		"text after":          {a + " done", []string{a}, 5},
		"two frames":          {a + b, []string{a, b}, 0},
		"two frames and text": {"x" + a + "yy" + b + "z", []string{a, b}, 4},
		"braces before":       {`{"a":{ {"jsonrpc` + a, []string{a}, 16},
		"other object before": {`{"a":1}` + a, []string{a}, 7},
		"other method before": {`x{"method":"GET"}` + a, []string{a}, 17},
		"quoted in an object": {`{"sent":` + a + `}`, nil, len(a) + 9},
		"quoted, then sent":   {`{"sent":` + a + `}` + b, []string{b}, len(a) + 9},
		"quoted in a string":  {`{"level":"info","msg":"{\"jsonrpc\":\"2.0\"}"}`, nil, 46},
		"our own request":     {`{"jsonrpc":"2.0","id":1,"method":"session/prompt"}`, nil, 50},
		"cut off":             {a[:40], nil, 40},
		"not an object":       {`["jsonrpc"]`, nil, 11},
		"neither":             {`{"jsonrpc":"2.0"}`, nil, 17},
		"response, no result": {`{"jsonrpc":"2.0","id":1}`, []string{`{"jsonrpc":"2.0","id":1}`}, 0},
	} {
		messages, noise := split([]byte(c.line))
		var frames []string
		for _, m := range messages {
			frames = append(frames, string(m.raw))
		}
		require.Equal(t, c.frames, frames, name)
		require.Equal(t, c.noise, noise, name)
	}
}

// A line full of braces takes bounded work.
func TestSplitIsBounded(t *testing.T) {
	line := strings.Repeat(`{"a":`, 200_000) + `"jsonrpc"`
	messages, noise := split([]byte(line))
	require.Empty(t, messages)
	require.Equal(t, len(line), noise)
}

// A payload is valid UTF-8 and the same JSON otherwise.
func TestClean(t *testing.T) {
	valid := json.RawMessage(`{"a":"ä\u0000\ud800"}`)
	require.Equal(t, valid, clean(valid))
	cleaned := clean(json.RawMessage("{\"a\":\"x\xff\xfey\xc3\"}"))
	require.True(t, utf8.Valid(cleaned))
	require.Equal(t, "{\"a\":\"x\uFFFDy\uFFFD\"}", string(cleaned))
}

// B-8: id and method of a frame too large to keep are found wherever they are,
// whatever the pieces it is read in.
func TestHeader(t *testing.T) {
	big := strings.Repeat(`\"}{,:`, maxToken)
	for frame, want := range map[string]message{
		`{"jsonrpc":"2.0","id":12,"result":{"id":1,"method":"m","x":"` + big + `"}}`:                      {ID: []byte(`12`)},
		`{"result":{"x":"` + big + `"},"id" : "a\"b" ,"jsonrpc":"2.0"}`:                                   {ID: []byte(`"a\"b"`)},
		`{"params":["` + big + `",{"method":"other"}],"method":"session\/update","jsonrpc":"2.0"}`:        {Method: "session/update"},
		`{ "method" : "m", "id":null, "params":"` + big + `"}`:                                            {Method: "m"},
		`{"id":1.5e3,"method":"fs\u002fread","params":{"id":2}}`:                                          {ID: []byte(`1.5e3`), Method: "fs/read"},
		`{"method":"` + strings.Repeat("m", maxToken) + `","id":"` + strings.Repeat("i", maxToken) + `"}`: {},
		`no json at all: , "id": 5 `: {},
		`]]]}}}{"id":5}`:             {},
	} {
		rapid.Check(t, func(t *rapid.T) {
			var h header
			for rest := []byte(frame); len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
				h.feed(rest[:n])
				rest = rest[n:]
			}
			if h.method != want.Method || string(h.id) != string(want.ID) {
				t.Fatalf("%.60s: method %q id %s", frame, h.method, h.id)
			}
		})
	}
}

// Lines of any length are read in memory bounded by the limit, with any line
// end, and the last one without.
func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 3*readBuffer)
	r := newLineReader(strings.NewReader("a\r\n\n  b  \n"+long+"\n"+long+long+"\nlast"), 4*readBuffer)
	var got []string
	for {
		l, err := r.next()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		if l.oversized != nil {
			require.EqualValues(t, 2*len(long)+1, l.size)
			require.Nil(t, l.data)
			require.Zero(t, cap(r.buf))
			got = append(got, "oversized")
			continue
		}
		require.EqualValues(t, len(l.data), l.size)
		got = append(got, string(l.data))
	}
	require.Equal(t, []string{"a", "", "b", long, "oversized", "last"}, got)
}
