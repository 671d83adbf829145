package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/stack/faultproxy"
	"github.com/kandev/recovery/internal/stack/postgrestest"
	"github.com/kandev/recovery/userapi"
)

// B-1, B-8, B-9, B-10, W-8: Postgres is restarted under two streams. The agent
// that says more than may be kept pauses, with standard error still read; neither
// loses or doubles anything, not even where the backend dies with what it could
// not commit, as in the last of the outages.
func TestPostgresIsRestartedUnderStreams(t *testing.T) {
	t.Parallel()
	outages := 2
	if long() {
		outages = 5
	}
	const updates, size = 160, 128 << 10 // more than an instance's 16 MiB hold
	database := postgrestest.Own(t)      // outlasts the world
	w := newWorld(t)
	w.settings["KANDEV_DATABASE_DSN"] = database.DSN()
	w.start().serving()
	steady, bulky := w.agent("steady"), w.agent("bulky")
	steady.prompt("one", "stream until file go every 2ms")
	for turn := range outages {
		key, goes := fmt.Sprintf("bulk-%d", turn), fmt.Sprintf("go-%d", turn)
		bulky.prompt(key, fmt.Sprintf("complain until file %s; wait file %s; stream %d size %d",
			filepath.Join(w.dir, "quiet"), filepath.Join(w.dir, goes), updates, size))
		position := steady.view().Position
		database.Stop(t)
		before := steady.produced().Updates
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, goes), nil, 0o600))
		bulky.pauses(turn * updates)
		require.Less(t, bulky.produced().Updates, (turn+1)*updates)
		w.eventually("the other one goes on", func() bool { return steady.produced().Updates > before })
		if turn == outages-1 {
			w.backend.kill()
			w.start()
		}
		database.Start(t)
		w.backend.serving()
		bulky.ended(key)
		steady.await("goes on", func(s userapi.Session) bool { return s.Position > position+100 })
	}
	steady.touch("go")
	steady.ended("one")
	steady.committedExactly(int64(steady.produced().Updates + 2))
	require.Equal(t, largeTurns(outages, updates), w.large(bulky.session, size))
	require.Equal(t, outages, bulky.turnsEnded())
	for _, a := range []*agent{steady, bulky} {
		a.undisturbed()
	}
}

// B-1, S-004.4, S-004.6: under the whole system connections to Postgres die before
// a COMMIT reaches it, while nobody knows of it, after it took effect, and between
// any two bytes. Whatever the backend has to do again, every event is in one row
// and every turn ended once, and the next backend recovers over such connections.
func TestEventsGoThroughConnectionsThatDie(t *testing.T) {
	t.Parallel()
	each := 1
	if long() {
		each = 10
	}
	for _, seed := range seeds(t, 1) {
		t.Run(fmt.Sprintf("RECOVERY_SEED=%d", seed), func(t *testing.T) { diesUnder(t, seed, each) })
	}
}

// faults are what connections die of, each within so many commits or bytes.
var faults = []faultproxy.Fault{
	{Kind: faultproxy.BeforeCommit, After: 8}, {Kind: faultproxy.AtCommit, After: 8}, {Kind: faultproxy.AfterCommit, After: 8},
	{Kind: faultproxy.ToServer, After: 30_000}, {Kind: faultproxy.ToClient, After: 12_000},
}

func diesUnder(t *testing.T, seed uint64, each int) {
	w := newWorld(t)
	proxy := faultproxy.Start(t, w.settings["KANDEV_DATABASE_DSN"])
	through := "KANDEV_DATABASE_DSN=" + proxy.DSN()
	w.start(through).serving()
	a := w.agent("streams")
	a.prompt("one", "stream until file go every 1ms")
	random := rand.New(rand.NewPCG(seed, seed))
	proxy.Use(func() faultproxy.Fault {
		fault := faults[random.IntN(len(faults))]
		fault.After = random.IntN(fault.After)
		return fault
	})
	die := func(n int) {
		for _, fault := range faults {
			w.eventually(fmt.Sprintf("%d connections are cut %s", n, fault.Kind), func() bool {
				return proxy.Made()[fault.Kind] >= n
			})
		}
	}
	for n := range each {
		die(n + 1)
	}
	w.backend.kill()
	w.start(through).serving()
	die(each + 1)
	a.touch("go")
	a.ended("one")
	proxy.Use(nil)
	a.committedExactly(int64(a.produced().Updates + 2))
	a.undisturbed()
	t.Log(proxy.Made())
}
