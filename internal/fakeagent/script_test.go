package fakeagent

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseScript(t *testing.T) {
	cases := map[string][]step{
		"stream 200 every 20ms size 2KB":            {stream{count: 200, every: 20 * time.Millisecond, size: 2048}},
		"stream until file /x/go every 5ms":         {stream{until: "/x/go", every: 5 * time.Millisecond}},
		"size 64KB\n\n; say \"a b\" c":              {size{64 << 10}, say{"a b c"}},
		"wait file go; sleep 1s; ask":               {wait{"go"}, sleep{time.Second}, ask{}},
		"spawn grandchild; spawn grandchild setsid": {spawn{}, spawn{setsid: true}},
		"ignore sigterm; exit 3":                    {ignoreTerm{}, exit{3}},
		"raw G1swbQ==; pieces 7; pieces 2KB; crlf":  {raw{[]byte("\x1b[0m")}, pieces{7}, pieces{2048}, crlf{}},
		"complain until file quiet":                 {complain{"quiet"}},
		"end max turn requests":                     {end{"max_turn_requests"}},
		"please do something; stream x":             {say{"heard you"}},
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			got, err := parseScript(text)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestParseScriptRefuses(t *testing.T) {
	for _, text := range []string{
		"stream", "stream 0", "stream 5 until file x", "stream ten", "stream 5 every soon", "size 0", "size big",
		"wait go", "sleep", "sleep long", "spawn child", "ignore sighup", "exit", "exit now",
		"raw", "raw !", "pieces 0", "crlf now", "complain", "complain until quiet",
		`say "open`, "say a; strem 4",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := parseScript(text)
			require.Error(t, err)
		})
	}
}

func TestUpdateTextRoundTrip(t *testing.T) {
	text := updateText(Entry{Turn: 3, N: 41, Text: "chose allow", Size: 64})
	require.Len(t, text, 64)
	u, ok := ParseUpdate(text)
	require.True(t, ok)
	require.Equal(t, 3, u.Turn)
	require.Equal(t, 41, u.N)
	for _, foreign := range []string{"", "7", "a b", "1 b c"} {
		_, ok := ParseUpdate(foreign)
		require.False(t, ok, foreign)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Setenv(EnvState, "")
	for _, args := range [][]string{
		{}, {"--state", "x", "--capabilities", "fly"}, {"--state", "x", "--exit-at", "tea-time"}, {"--unknown"},
	} {
		var out, errOut bytes.Buffer
		require.Equal(t, 1, Main(args, &bytes.Buffer{}, &out, &errOut), args)
		require.NotEmpty(t, errOut.String())
		require.Empty(t, out.String())
	}
}
