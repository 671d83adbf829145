package recovery

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// S-002.14: every value is declared once, with one source, and nothing that is
// re-derived is read from the instance.
func TestRestoredValuesHaveOneSource(t *testing.T) {
	want := map[Value]Source{
		ValueSession: FromRecord, ValueTask: FromRecord, ValueWorkspace: FromRecord, ValueProfile: FromRecord,
		ValueTaskEnvironment: FromSession, ValueInstance: FromListing,
		ValueRoots: FromInstance, ValueRunEnv: FromInstance, ValueProviderSession: FromInstance,
		ValueRunID: FromRunEnv,
		ValueAgent: FromProfile, ValueCommand: FromProfile, ValueHistory: FromProfile,
	}
	got := map[Value]Source{}
	for _, r := range RestoredValues() {
		_, twice := got[r.Value]
		require.False(t, twice, "%s is declared twice", r.Value)
		got[r.Value] = r.Source
	}
	require.Equal(t, want, got)
}

// S-002.4: absent is missing whatever the value; empty is missing only where
// that is not legitimate.
func TestMissingTellsAbsentFromEmpty(t *testing.T) {
	for _, r := range RestoredValues() {
		absent := Missing(func(v Value) (bool, bool) { return v != r.Value, false })
		require.Equal(t, []string{string(r.Value)}, absent)
		empty := Missing(func(v Value) (bool, bool) { return true, v == r.Value })
		if r.MayBeEmpty {
			require.Empty(t, empty)
		} else {
			require.Equal(t, []string{string(r.Value)}, empty)
		}
	}
}
