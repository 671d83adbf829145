package fakeagent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// writes keeps what each write was given.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestOutputAsTheScriptWantsIt(t *testing.T) {
	var got writes
	o := &output{w: &got}
	for _, change := range []func(){func() {}, o.endInCRLF, func() { o.splitInto(2) }} {
		change()
		n, err := o.Write([]byte("one\n"))
		require.NoError(t, err)
		require.Equal(t, 4, n)
	}
	require.Equal(t, writes{"one\n", "one\r\n", "on", "e\r", "\n"}, got)
}
