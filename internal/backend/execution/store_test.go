package execution

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/recovery"
)

func agent(session, instance string) Execution {
	return Execution{SessionID: session, InstanceID: instance, ServerIdentity: "server"}
}

// refused asserts the reason of a refusal; the empty reason means admitted.
func refused(t *testing.T, want recovery.LaunchRefusal, got *Refusal) {
	t.Helper()
	if want == "" {
		require.Nil(t, got)
		return
	}
	require.NotNil(t, got)
	require.Equal(t, want, got.LaunchRefusal)
}

// W-8, S-005.3: a new store refuses every launch with the retryable recovery
// reason except those of passthrough sessions; taking guards opens it.
func TestClosedUntilGuardsAreTaken(t *testing.T) {
	s := New()
	refused(t, recovery.LaunchRefusedRecovering, s.AdmitLaunch("a", false))
	require.True(t, s.AdmitLaunch("a", false).Retryable())
	refused(t, "", s.AdmitLaunch("a", true))

	taken, err := s.TakeGuards(1, []string{"b", "a"})
	require.NoError(t, err)
	require.Equal(t, Taken{Guarded: []string{"a", "b"}}, taken)
	refused(t, recovery.LaunchRefusedRecovering, s.AdmitLaunch("a", false))
	refused(t, "", s.AdmitLaunch("c", false))
	require.True(t, s.Guarded("a"))
	require.False(t, s.Guarded("c"))
}

// W-8: with nothing to guard, launches can be opened directly.
func TestOpenLaunches(t *testing.T) {
	s := New()
	s.OpenLaunches()
	refused(t, "", s.AdmitLaunch("a", false))
}

// S-002.8, S-002.9: a tracked session is observed and not tracked again by the
// observer; repeating a pass's guards changes nothing.
func TestTrackedSessionIsObserved(t *testing.T) {
	s := New()
	_, err := s.TakeGuards(1, []string{"a", "b"})
	require.NoError(t, err)
	require.NoError(t, s.Track(1, agent("a", "i1")))
	s.ReleaseGuard(1, "a")

	taken, err := s.TakeGuards(1, []string{"a", "b"})
	require.NoError(t, err)
	require.Equal(t, Taken{Guarded: []string{"b"}, Observed: []string{"a"}}, taken)
	require.NoError(t, s.Track(1, agent("a", "i1")), "a retried activity")
	require.ErrorIs(t, s.Track(1, agent("a", "i2")), ErrTracked)
	require.ErrorIs(t, s.Track(1, agent("c", "i3")), ErrNotGuarded)
	require.Len(t, s.List(), 1)
	refused(t, recovery.LaunchRefusedTracked, s.AdmitLaunch("a", false))
}

// A newer pass takes guards over, forgets what an older one had not finished
// publishing, and fences the older.
func TestNewerPassFencesOlder(t *testing.T) {
	s := New()
	_, err := s.TakeGuards(1, []string{"done", "half", "open"})
	require.NoError(t, err)
	require.NoError(t, s.Track(1, agent("done", "i1")))
	s.ReleaseGuard(1, "done")
	require.NoError(t, s.Track(1, agent("half", "i2")))
	s.Keep(1, "open", "observed")

	taken, err := s.TakeGuards(2, []string{"done", "half", "open"})
	require.NoError(t, err)
	require.Equal(t, Taken{Guarded: []string{"half", "open"}, Observed: []string{"done"}}, taken)
	_, err = s.TakeGuards(1, nil)
	require.ErrorIs(t, err, ErrFenced)
	require.ErrorIs(t, s.Track(1, agent("open", "i3")), ErrFenced)
	_, kept := s.Kept(1, "open")
	require.False(t, kept)
	_, kept = s.Kept(2, "open")
	require.False(t, kept, "nothing is inherited")
	s.ReleaseGuard(1, "open")
	require.True(t, s.Guarded("open"), "an older pass releases nothing")
	s.ClosePass(1)
	require.NoError(t, s.Track(2, agent("half", "i2")))
}

// S-003.7: closing the pass is one step: what is tracked later is refused, while a
// publication that was in time may finish and be repeated. Guards stay until the
// sessions are settled.
func TestClosePass(t *testing.T) {
	s := New()
	_, err := s.TakeGuards(1, []string{"late", "publishing"})
	require.NoError(t, err)
	for _, session := range []string{"late", "publishing"} {
		s.Keep(1, session, "observed")
	}
	require.NoError(t, s.Track(1, agent("publishing", "i1")))

	s.ClosePass(1)
	s.ClosePass(1)
	require.ErrorIs(t, s.Track(1, agent("late", "i2")), ErrFenced)
	s.Keep(1, "late", "too late")
	for _, session := range []string{"late", "publishing"} {
		observation, ok := s.Kept(1, session)
		require.True(t, ok)
		require.Equal(t, "observed", observation)
		refused(t, recovery.LaunchRefusedRecovering, s.AdmitLaunch(session, false))
		s.ReleaseGuard(1, session)
		require.False(t, s.Guarded(session))
	}
	refused(t, "", s.AdmitLaunch("late", false))
	_, kept := s.Kept(1, "late")
	require.False(t, kept)
	_, kept = s.Kept(1, "publishing")
	require.True(t, kept, "the publication may be repeated")
	require.NoError(t, s.Track(1, agent("publishing", "i1")))

	_, err = s.TakeGuards(1, []string{"late"})
	require.ErrorIs(t, err, ErrFenced)
	_, err = s.TakeGuards(2, []string{"late"})
	require.NoError(t, err)
}

// S-002.16: a session with an agent that could not be stopped stays refused,
// not retryably, through the end of its pass and through newer passes.
func TestKeptGuardOutlastsPasses(t *testing.T) {
	s := New()
	_, err := s.TakeGuards(1, []string{"a"})
	require.NoError(t, err)
	s.KeepGuard("a", "i1")
	s.ReleaseGuard(1, "a")
	s.ClosePass(1)
	taken, err := s.TakeGuards(2, []string{"a"})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, taken.Observed)
	s.ClosePass(2)

	refusal := s.AdmitLaunch("a", false)
	refused(t, recovery.LaunchRefusedUnstopped, refusal)
	require.Equal(t, "i1", refusal.InstanceID)
	require.False(t, refusal.Retryable())
	require.True(t, s.Guarded("a"))
}

// S-002.8: a launch that was admitted before the session was guarded does not
// slip past the guard.
func TestLaunchAdmittedBeforeTheGuard(t *testing.T) {
	s := New()
	s.OpenLaunches()
	refused(t, "", s.AdmitLaunch("a", false))
	_, err := s.TakeGuards(1, []string{"a"})
	require.NoError(t, err)
	var refusal *Refusal
	require.ErrorAs(t, s.TrackLaunched(agent("a", "i1")), &refusal)
	require.True(t, refusal.Retryable())
	s.ReleaseGuard(1, "a")
	require.NoError(t, s.TrackLaunched(agent("a", "i1")))
	require.NoError(t, s.TrackLaunched(agent("a", "i1")), "a retried activity")
	require.ErrorIs(t, s.TrackLaunched(agent("a", "i2")), ErrTracked)
	passthrough := agent("p", "i3")
	passthrough.Passthrough = true
	require.NoError(t, New().TrackLaunched(passthrough))
}

// O-002.3: executions of a superseded server are dropped, others stay; a drop
// by instance never drops its successor.
func TestDrop(t *testing.T) {
	s := New()
	s.OpenLaunches()
	other := agent("c", "i3")
	other.ServerIdentity = "other"
	for _, e := range []Execution{agent("a", "i1"), agent("b", "i2"), other} {
		require.NoError(t, s.TrackLaunched(e))
	}
	require.False(t, s.DropInstance("a", "older"))
	require.True(t, s.DropInstance("a", "i1"))
	require.NoError(t, s.TrackLaunched(agent("a", "i4")))
	dropped := s.DropServer("server")
	require.Len(t, dropped, 2)
	require.Equal(t, "i4", dropped[0].InstanceID)
	require.Equal(t, "i2", dropped[1].InstanceID)
	s.Drop("c")
	require.Empty(t, s.List())
}

// S-002.5: what a caller does to the values it got or gave changes nothing.
func TestValuesAreCopies(t *testing.T) {
	s := New()
	s.OpenLaunches()
	given := agent("a", "i1")
	given.Roots, given.RunEnv = []string{"/w"}, map[string]string{"KANDEV_RUN_ID": "r"}
	require.NoError(t, s.TrackLaunched(given))
	given.Roots[0] = "/"
	got, ok := s.Get("a")
	require.True(t, ok)
	got.Roots[0], got.RunEnv["KANDEV_RUN_ID"] = "/", "x"
	got, ok = s.Get("a")
	require.True(t, ok)
	require.Equal(t, []string{"/w"}, got.Roots)
	require.Equal(t, map[string]string{"KANDEV_RUN_ID": "r"}, got.RunEnv)
	_, ok = s.Get("b")
	require.False(t, ok)
}

// S-002.8, S-003.7: however trackings, the end of the pass and launches
// interleave, a session never gets two agents, and no tracking succeeds once the
// pass is closed.
func TestOneAgentPerSessionUnderRace(t *testing.T) {
	const sessions = 200
	s := New()
	names := make([]string, sessions)
	for i := range names {
		names[i] = fmt.Sprintf("s%d", i)
	}
	_, err := s.TakeGuards(1, names)
	require.NoError(t, err)

	var closed atomic.Bool
	var wg sync.WaitGroup
	winners := make([]atomic.Int32, sessions)
	for i, name := range names {
		wg.Go(func() {
			late := closed.Load()
			if s.Track(1, agent(name, "survivor")) == nil {
				winners[i].Add(1)
				require.False(t, late, "tracked after the close")
			}
		})
		wg.Go(func() {
			if s.AdmitLaunch(name, false) == nil && s.TrackLaunched(agent(name, "launched")) == nil {
				winners[i].Add(1)
			}
		})
	}
	wg.Go(func() {
		s.ClosePass(1)
		closed.Store(true)
		for _, name := range names {
			s.ReleaseGuard(1, name)
		}
	})
	wg.Wait()
	for i := range winners {
		require.LessOrEqual(t, winners[i].Load(), int32(1))
	}
}
