package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/internal/sealedcopy"
	"github.com/kandev/recovery/userapi"
)

// absence is a peer of the backend that is away until back is called.
type absence struct {
	name string
	away func(*world) (setting string, back func())
}

var absences = []absence{{"Postgres", postgresAway}, {"Temporal", temporalAway}}

// keepsAlive waits until the backend says that it keeps the server alive.
func (b *backend) keepsAlive(server, means string) userapi.KeepingAlive {
	b.w.t.Helper()
	b.w.eventually("the backend keeps the control server alive by "+means, func() bool {
		return b.answers() && b.status.KeepingAlive != nil
	})
	kept := *b.status.KeepingAlive
	require.Equal(b.w.t, server, kept.ServerIdentity)
	require.Equal(b.w.t, means, kept.Means)
	require.Nil(b.w.t, b.status.Control)
	return kept
}

// adopts waits until the backend has adopted the server that it kept alive, and
// checks that its agent has lost nothing.
func (s *siege) adopts(b *backend) {
	s.t.Helper()
	status := b.serving().status
	require.True(s.t, status.Control.Adopted)
	require.Equal(s.t, s.record.ServerIdentity, status.Control.ServerIdentity)
	require.Nil(s.t, status.KeepingAlive)
	s.agent.touch("go")
	s.agent.ended("one")
	s.agent.unharmed()
	b.kill()
}

// B-2, B-15, O-003.1, W-8: with Postgres or Temporal away for longer than a
// control server tolerates having no owner, the next backend says that it keeps
// the server alive, and adopts it with its agents once it can recover. The first
// claim comes at once; only the long run waits for the others. Whatever lay in
// the temporary directory is gone by then.
func TestSurvivorsAreKeptAliveWhileAPeerIsAway(t *testing.T) {
	t.Parallel()
	for _, peer := range absences {
		t.Run(peer.name, func(t *testing.T) {
			w := newWorld(t)
			w.settings["KANDEV_ACP_UNOWNED_PERIOD"] = "1m"
			w.settings["TMPDIR"] = filepath.Join(w.dir, "tmp")
			require.NoError(t, os.Mkdir(w.settings["TMPDIR"], 0o700))
			s := besiege(w)
			require.NoError(t, os.RemoveAll(w.settings["TMPDIR"]))
			setting, back := peer.away(w)
			b := w.start(setting)
			first := b.keepsAlive(s.record.ServerIdentity, "claim")
			if long() {
				w.lasts(b, first.LastRenewal.Add(150*time.Second))
			}
			back()
			s.adopts(b)
		})
	}
}

// lasts watches the backend keep the server alive until its last renewal is past
// the moment.
func (w *world) lasts(b *backend, until time.Time) {
	w.t.Helper()
	const renewals = 20 * time.Second // a quarter of a minute, and some patience
	for last := b.status.KeepingAlive.LastRenewal; last.Before(until); {
		w.eventually("the next renewal", func() bool {
			return b.answers() && b.status.KeepingAlive != nil && b.status.KeepingAlive.LastRenewal.After(last)
		})
		next := b.status.KeepingAlive.LastRenewal
		require.Less(w.t, next.Sub(last), renewals)
		last = next
	}
}

// B-2, O-002.10: a boot that died with a rotation that it had not stored leaves a
// superseded credential, one that died between sealed copy and Postgres a copy
// that is newer than Postgres. Both are kept alive while Postgres is away, by a
// replay and by a claim; neither issues a further credential, and the next boot
// adopts by the very rotation of the dead one.
func TestAHalfRotatedServerIsKeptAlive(t *testing.T) {
	t.Parallel()
	for point, means := range map[string]string{"adoption.rotated": "rotation_replay", "adoption.copied": "claim"} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			s := besiege(w)
			w.start("KANDEV_CRASH_AT=" + point).died()
			stored, _ := s.recorded()
			require.Equal(t, s.record.RotationID, stored.RotationID)
			copied := w.sealedCopy()

			setting, back := postgresAway(w)
			b := w.start(setting)
			b.keepsAlive(s.record.ServerIdentity, means)
			require.Equal(t, copied, w.sealedCopy(), "nothing is stored")
			back()
			s.adopts(b)
			adopted, _ := s.recorded()
			require.Equal(t, s.record.RotationID+1, adopted.RotationID)
		})
	}
}

// B-2, B-26: a server that Postgres does not record is ended again, and the
// sealed copy names the one before, as Postgres does, which is kept alive all the
// while.
func TestAServerThatIsNotRecordedLeavesTheCopy(t *testing.T) {
	w := newWorld(t)
	s := besiege(w)
	copied := w.sealedCopy()
	w.bend(`UPDATE secrets SET sealed = 'garbled'`)
	w.execute(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`)
	w.execute(`CREATE TRIGGER refuse BEFORE INSERT ON control_server_records EXECUTE FUNCTION refuse()`)
	b := w.start()
	w.eventually("a server is not recorded", func() bool { return w.logged("not recorded, ended again") })
	w.eventually("the copy names the server before", func() bool { return bytes.Equal(copied, w.sealedCopy()) })
	b.keepsAlive(s.record.ServerIdentity, "claim")
	w.execute(`DROP TRIGGER refuse ON control_server_records`)
	b.serving()
	s.standsAlone([]byte("garbled"))
	require.NotEqual(t, copied, w.sealedCopy())
	s.mend()
	s.endures()
}

// logged reports whether the backends' log has the words.
func (w *world) logged(words string) bool {
	w.t.Helper()
	log, err := os.ReadFile(filepath.Join(w.home, "logs", "backend.log"))
	require.NoError(w.t, err)
	return bytes.Contains(log, []byte(words))
}

// execute changes the schema behind the product's back.
func (w *world) execute(sql string) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.settings["KANDEV_DATABASE_DSN"])
	require.NoError(w.t, err)
	defer conn.Close(w.t.Context())
	_, err = conn.Exec(w.t.Context(), sql)
	require.NoError(w.t, err)
}

// B-2, O-001.1, W-4: the sealed copy is written with every record, is its owner's
// alone and shows neither credential nor endpoint; it goes with its server.
func TestTheSealedCopyLastsAsLongAsItsServer(t *testing.T) {
	w := newWorld(t)
	s := besiege(w)
	written := w.sealedCopy()
	for _, clear := range []string{s.token, s.record.Endpoint, s.record.ServerIdentity} {
		require.False(t, bytes.Contains(written, []byte(clear)))
	}
	info, err := os.Stat(filepath.Join(w.home, sealedcopy.FileName))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	w.start().serving()
	require.NotEqual(t, written, w.sealedCopy(), "the adoption's rotation is copied")
	w.backend.kill()
	out, err := w.command("--end-control-server").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, w.sealedCopy())
}

// sealedCopy is the content of the sealed copy, empty if there is none.
func (w *world) sealedCopy() []byte {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join(w.home, sealedcopy.FileName))
	if !os.IsNotExist(err) {
		require.NoError(w.t, err)
	}
	return content
}
