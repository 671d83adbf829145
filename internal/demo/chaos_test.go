package demo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A seed draws the same rounds again, another one others. Some recoveries finish,
// the first of all, and most do not; the kills are spread over a recovery's time.
func TestChaosIsDrawnFromItsSeed(t *testing.T) {
	const rounds = 400
	drawn := plan(7, rounds)
	require.Equal(t, drawn, plan(7, rounds))
	require.Equal(t, drawn[:20], plan(7, 20))
	require.NotEqual(t, drawn, plan(8, rounds))
	require.True(t, drawn[0].finish)
	finished, late := 0, 0
	for _, r := range drawn {
		require.True(t, r.part >= 0 && r.part < 1)
		if r.finish {
			finished++
		}
		if r.part > 0.5 {
			late++
		}
	}
	require.InDelta(t, rounds/oneIn, finished, rounds/10)
	require.InDelta(t, rounds/2, late, rounds/10)
}

func TestSeedIsKeptOrDrawn(t *testing.T) {
	require.EqualValues(t, 7, seedOf(7))
	drawn := map[uint32]bool{}
	for range 10 {
		require.NotZero(t, seedOf(0))
		drawn[seedOf(0)] = true
	}
	require.Greater(t, len(drawn), 1)
}
