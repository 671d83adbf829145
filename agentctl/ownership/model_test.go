package ownership

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kandev/recovery/agentctl/wire"
)

// O-002.1, O-002.2, O-002.5 to O-002.10, O-003.1, O-003.2, O-003.9, B-13: two
// backends adopt, crash between any two durable writes, lose answers, race and
// go on under what they no longer hold, while time passes and stands still.
// After every step at most two credentials are acceptable, only the newest
// drives a request or a stream, numbers only grow, the next boot adopts with
// nothing but what was stored, and a server that nobody claims ends itself.
func TestOwnershipModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.close()
		t.Repeat(map[string]func(*rapid.T){
			"boot":     w.boot,
			"rotate":   w.rotate,
			"race":     w.race,
			"store":    w.store,
			"confirm":  w.confirm,
			"misnamed": w.confirmAnother,
			"claim":    w.claim,
			"drive":    w.drive,
			"let go":   w.letGo,
			"shutdown": w.shutdown,
			"wait":     w.wait,
			"freeze":   w.freeze,
			"":         w.check,
		})
	})
}

// boot crashes a backend wherever it was and starts it again.
func (w *world) boot(t *rapid.T) { *w.backend(t) = backend{read: w.disk} }

func (w *world) rotate(t *rapid.T) {
	b := w.backend(t)
	issued, err := w.authority.Rotate(context.Background(), b.read.token)
	id, refused := w.model.rotate(b.read.id, w.clock.now)
	if code(err) != refused || issued.RotationID != id {
		t.Fatalf("rotation %d with credential %d: %v", issued.RotationID, b.read.id, err)
	}
	if err != nil {
		return
	}
	if known, ok := w.tokens[id]; ok && known != issued.Credential {
		t.Fatalf("rotation %d was answered with two credentials", id)
	}
	answer := w.learn(issued)
	if !rapid.Bool().Draw(t, "lost") {
		b.issued, b.stored = answer, false
	}
}

// race has both backends rotate at once: the answers are those of one order.
func (w *world) race(t *rapid.T) {
	type answer struct {
		id      uint64
		refused wire.Code
	}
	var got [len(w.backends)]answer
	var issued [len(w.backends)]wire.Issued
	var racing sync.WaitGroup
	for i, b := range w.backends {
		racing.Go(func() {
			var err error
			issued[i], err = w.authority.Rotate(context.Background(), b.read.token)
			got[i] = answer{issued[i].RotationID, code(err)}
		})
	}
	racing.Wait()
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		model := w.model
		var want [len(w.backends)]answer
		for _, i := range order {
			want[i].id, want[i].refused = model.rotate(w.backends[i].read.id, w.clock.now)
		}
		if want != got {
			continue
		}
		w.model = model
		for i := range issued {
			if got[i].refused == "" {
				w.backends[i].issued, w.backends[i].stored = w.learn(issued[i]), false
			}
		}
		return
	}
	t.Fatalf("in no order: %+v", got)
}

// store writes secret and record. A backend that comes too late reads again.
func (w *world) store(t *rapid.T) {
	b := w.backend(t)
	if b.issued.id == 0 {
		return
	}
	if b.stored = w.write(b.issued); !b.stored {
		*b = backend{read: w.disk}
	}
}

// confirm comes after the durable write, and may be repeated.
func (w *world) confirm(t *rapid.T) {
	if b := w.backend(t); b.stored {
		w.name(t, b, b.issued.id)
	}
}

// confirmAnother names any rotation but the one that is not stored yet.
func (w *world) confirmAnother(t *rapid.T) {
	b := w.backend(t)
	named := rapid.Uint64Range(0, w.model.newest+1).Draw(t, "named")
	if named != b.issued.id || b.stored {
		w.name(t, b, named)
	}
}

func (w *world) name(t *rapid.T, b *backend, rotation uint64) {
	driving, err := w.authority.Confirm(b.issued.token, rotation)
	want, refused := w.model.confirm(b.issued.id, rotation)
	if driving != want || code(err) != refused {
		t.Fatalf("credential %d confirmed %d: %d, %v", b.issued.id, rotation, driving, err)
	}
}

func (w *world) claim(t *rapid.T) {
	b := w.backend(t)
	err := w.authority.Claim(b.issued.token)
	if code(err) != w.model.claim(b.issued.id, w.clock.now) {
		t.Fatalf("claim with credential %d: %v", b.issued.id, err)
	}
}

// drive begins a request or a stream, which goes on until it is let go.
func (w *world) drive(t *rapid.T) {
	b := w.backend(t)
	kind := rapid.SampledFrom([]Kind{Request, Stream}).Draw(t, "kind")
	m, err := w.authority.Admit(b.issued.token, kind)
	if code(err) != w.model.standing(b.issued.id) {
		t.Fatalf("admission with credential %d: %v", b.issued.id, err)
	}
	if err == nil {
		w.hold(b.issued.id, m)
	}
}

func (w *world) letGo(t *rapid.T) {
	if len(w.held) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.held)-1).Draw(t, "held")
	w.held[i].admission.Release()
	w.held = slices.Delete(w.held, i, i+1)
}

// shutdown is rare, because little happens after it.
func (w *world) shutdown(t *rapid.T) {
	id := rapid.Uint64Range(0, w.model.newest).Draw(t, "credential")
	if w.model.acceptable(id) && rapid.IntRange(0, 9).Draw(t, "spared") != 0 {
		return
	}
	if err := w.authority.Shutdown(w.tokens[id]); code(err) != w.model.shutdown(id) {
		t.Fatalf("shutdown with credential %d: %v", id, err)
	}
}

// wait lets time pass with the watch running.
func (w *world) wait(t *rapid.T) {
	left := time.Duration(rapid.Int64Range(1, int64(period)*5/4).Draw(t, "for"))
	for left > 0 {
		step := min(left, max(w.due.Sub(w.clock.now), 0))
		w.clock.sleep(step)
		left -= step
		if w.clock.now.Before(w.due) || w.authority.Reason() != "" {
			return
		}
		w.judge()
	}
}

// freeze lets time pass without anybody running.
func (w *world) freeze(t *rapid.T) {
	w.clock.sleep(time.Duration(rapid.Int64Range(1, int64(period)*2).Draw(t, "for")))
	if w.authority.Reason() == "" && !w.clock.now.Before(w.due) {
		w.judge()
	}
}

func (w *world) judge() {
	late := w.clock.now.Sub(w.due)
	wait := w.authority.judge(w.due)
	w.model.judge(w.clock.now, late)
	w.due = w.clock.now.Add(wait)
}
