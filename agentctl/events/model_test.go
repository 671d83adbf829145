package events

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kandev/recovery/agentctl/wire"
)

// model is what a log must be, written down plainly.
type model struct {
	sizes     []int64 // cost of every event ever kept; index is number-1
	acked     int64
	attached  bool
	after     int64 // cursor of the stream
	delivered int64
	taken     int64 // by the stream's reader
	finished  bool
	closed    bool
}

func (m *model) held() int64 {
	var sum int64
	if m.closed {
		return 0
	}
	for _, s := range m.sizes[m.acked:] {
		sum += s
	}
	return sum
}

func (m *model) kept() int { return len(m.sizes) - int(m.acked) }

// exhausted says whether the reader has more than one batch to acknowledge.
func (m *model) exhausted() bool {
	var bytes, events int64
	for _, s := range m.sizes[max(m.after, m.acked):m.delivered] {
		bytes, events = bytes+s, events+1
	}
	return bytes > batchBytes || events > batchEvents
}

// machine drives two logs under one budget beside their models.
type machine struct {
	limits  Limits
	total   int64
	budget  *Budget
	logs    [2]*Log
	streams [2]*Stream
	models  [2]model
}

func (c *machine) admits(m *model, size int64) bool {
	if m.attached && m.kept() == 0 {
		return true
	}
	if !m.attached && m.kept() >= c.limits.Count {
		return false
	}
	return m.held()+size <= c.limits.Bytes && c.models[0].held()+c.models[1].held()+size <= c.total
}

func (c *machine) append(t *rapid.T, i int) {
	m := &c.models[i]
	payload := json.RawMessage(strings.Repeat("x", rapid.IntRange(0, 400).Draw(t, "bytes")))
	size := int64(len(payload)) + overhead
	want := c.admits(m, size)
	seq, err := c.logs[i].Append(done(), wire.EventUpdate, "", payload)
	switch {
	case m.closed || m.finished:
		if !errors.Is(err, ErrClosed) {
			t.Fatalf("append to an ended log: %v", err)
		}
	case !want:
		if err == nil {
			t.Fatalf("append beyond a bound got %d", seq)
		}
	case err != nil || seq != int64(len(m.sizes))+1:
		t.Fatalf("append with room: %d, %v", seq, err)
	default:
		m.sizes = append(m.sizes, size)
	}
}

func (c *machine) attach(t *rapid.T, i int) {
	m := &c.models[i]
	after := rapid.Int64Range(-1, int64(len(m.sizes))+1).Draw(t, "after")
	s, err := c.logs[i].Attach(after)
	var gap *GapError
	switch {
	case m.closed:
		if !errors.Is(err, ErrClosed) {
			t.Fatalf("attach to a closed log: %v", err)
		}
	case after < m.acked || after > int64(len(m.sizes)):
		if !errors.As(err, &gap) || gap.First != m.acked+1 || gap.Next != int64(len(m.sizes))+1 {
			t.Fatalf("attach after %d: %v", after, err)
		}
	case err != nil:
		t.Fatalf("attach after %d: %v", after, err)
	default:
		if old := c.streams[i]; m.attached && !errors.Is(old.Err(), ErrNewerStream) {
			t.Fatalf("older stream: %v", old.Err())
		}
		c.streams[i], m.attached, m.after, m.delivered, m.taken = s, true, after, after, after
		c.settle(m)
	}
}

// settle is the end of the stream of a finished log.
func (c *machine) settle(m *model) {
	if m.finished && m.kept() == 0 {
		m.attached = false
	}
}

func (c *machine) next(t *rapid.T, i int) {
	m, s := &c.models[i], c.streams[i]
	if s == nil {
		return
	}
	batch, err := s.Next(done())
	if !m.attached || m.delivered == int64(len(m.sizes)) || m.exhausted() {
		if err == nil {
			t.Fatalf("delivered %d events", len(batch))
		}
		return
	}
	if err != nil {
		t.Fatalf("next: %v", err)
	}
	for _, e := range batch {
		if m.delivered++; e.Seq != m.delivered {
			t.Fatalf("event %d, want %d", e.Seq, m.delivered)
		}
	}
}

func (c *machine) ack(t *rapid.T, i int) {
	m, s := &c.models[i], c.streams[i]
	if s == nil {
		return
	}
	seq := rapid.Int64Range(0, int64(len(m.sizes))+1).Draw(t, "ack")
	err := s.Ack(seq)
	if want := m.attached && seq <= m.delivered; want != (err == nil) {
		t.Fatalf("ack %d of %d delivered: %v", seq, m.delivered, err)
	}
	if err == nil {
		m.acked, m.taken = max(m.acked, seq), max(m.taken, seq)
		c.settle(m)
	}
}

func (c *machine) taken(t *rapid.T, i int) {
	m, s := &c.models[i], c.streams[i]
	if s == nil {
		return
	}
	seq := rapid.Int64Range(0, int64(len(m.sizes))+1).Draw(t, "taken")
	s.Taken(seq)
	m.taken = max(m.taken, min(seq, m.delivered))
}

func (c *machine) check(t *rapid.T) {
	var used int64
	for i := range c.models {
		m := &c.models[i]
		used += m.held()
		if c.logs[i].Attached() != m.attached {
			t.Fatalf("attached: %v", c.logs[i].Attached())
		}
		if s := c.streams[i]; s != nil && s.UnderWay() != (m.attached && m.taken < m.delivered) {
			t.Fatalf("under way: %v", s.UnderWay())
		}
		if c.logs[i].LastSeq() != int64(len(m.sizes)) {
			t.Fatalf("last number: %d", c.logs[i].LastSeq())
		}
	}
	if c.budget.Used() != used {
		t.Fatalf("budget: %d, want %d", c.budget.Used(), used)
	}
}

// S-001.6, B-1, B-8: whatever is done in whatever order, a log behaves like its
// model: bounds, numbers, gaps, redelivery, budget.
func TestLogLikeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &machine{limits: Limits{Count: 3, Bytes: 1200}, total: 1600}
		c.budget = NewBudget(c.total)
		for i := range c.logs {
			c.logs[i] = NewLog(c.limits, c.budget, fixedClock)
		}
		on := func(step func(*rapid.T, int)) func(*rapid.T) {
			return func(t *rapid.T) { step(t, rapid.IntRange(0, 1).Draw(t, "log")) }
		}
		rare := func(t *rapid.T, step func()) {
			if rapid.IntRange(0, 9).Draw(t, "rare") == 0 {
				step()
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append":  on(c.append),
			"append2": on(c.append),
			"attach":  on(c.attach),
			"next":    on(c.next),
			"ack":     on(c.ack),
			"taken":   on(c.taken),
			"detach": on(func(_ *rapid.T, i int) {
				if c.streams[i] != nil {
					c.streams[i].Close()
					c.models[i].attached = false
				}
			}),
			"finish": on(func(t *rapid.T, i int) {
				rare(t, func() { c.logs[i].Finish(); c.models[i].finished = true; c.settle(&c.models[i]) })
			}),
			"close": on(func(t *rapid.T, i int) {
				rare(t, func() { c.logs[i].Close(); c.models[i].closed = true; c.models[i].attached = false })
			}),
			"": c.check,
		})
	})
}
