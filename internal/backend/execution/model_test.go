package execution

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/kandev/recovery/recovery"
)

// model is the store said in the simplest words: for every session, who holds it.
type model struct {
	open      bool
	pass      int64
	closed    bool
	guard     map[string]bool
	unstopped map[string]bool
	agent     map[string]string
}

func (m *model) refusal(session string) recovery.LaunchRefusal {
	switch {
	case m.unstopped[session]:
		return recovery.LaunchRefusedUnstopped
	case m.guard[session] || !m.open:
		return recovery.LaunchRefusedRecovering
	case m.agent[session] != "":
		return recovery.LaunchRefusedTracked
	default:
		return ""
	}
}

func (m *model) takeGuards(pass int64, sessions []string) {
	if pass > m.pass {
		m.fence(pass)
	}
	m.open = true
	for _, s := range sessions {
		if m.agent[s] == "" && !m.unstopped[s] {
			m.guard[s] = true
		}
	}
}

func (m *model) canTrack(pass int64, session, instance string) bool {
	if pass != m.pass {
		return false
	}
	if has := m.agent[session]; has != "" {
		return has == instance
	}
	return !m.closed && m.guard[session]
}

func (m *model) closePass(pass int64) {
	if pass < m.pass {
		return
	}
	if pass > m.pass {
		m.fence(pass)
	}
	m.closed = true
}

// fence forgets what older passes held or had not finished publishing.
func (m *model) fence(pass int64) {
	for s := range m.guard {
		delete(m.agent, s)
	}
	m.guard, m.pass, m.closed = map[string]bool{}, pass, false
}

// S-002.8, S-002.9, S-002.16, S-003.7: any sequence of operations leaves the
// store in the state that the model says, seen through its own answers.
func TestStoreFollowsModel(t *testing.T) {
	sessions := []string{"a", "b", "c"}
	session := rapid.SampledFrom(sessions)
	instance := rapid.SampledFrom([]string{"i", "j"})
	pass := rapid.Int64Range(1, 4)
	rapid.Check(t, func(t *rapid.T) {
		s := New()
		m := &model{guard: map[string]bool{}, unstopped: map[string]bool{}, agent: map[string]string{}}
		t.Repeat(map[string]func(*rapid.T){
			"takeGuards": func(t *rapid.T) {
				p, wanted := pass.Draw(t, "pass"), rapid.SliceOfDistinct(session, rapid.ID).Draw(t, "sessions")
				_, err := s.TakeGuards(p, wanted)
				allowed := p > m.pass || p == m.pass && !m.closed
				same(t, "take guards", allowed, err == nil)
				if allowed {
					m.takeGuards(p, wanted)
				}
			},
			"track": func(t *rapid.T) {
				p, x, i := pass.Draw(t, "pass"), session.Draw(t, "session"), instance.Draw(t, "instance")
				allowed := m.canTrack(p, x, i)
				same(t, "track", allowed, s.Track(p, agent(x, i)) == nil)
				if allowed {
					m.agent[x] = i
				}
			},
			"launch": func(t *rapid.T) {
				x, i := session.Draw(t, "session"), instance.Draw(t, "instance")
				refusal := m.refusal(x)
				allowed := refusal == "" || refusal == recovery.LaunchRefusedTracked && m.agent[x] == i
				same(t, "launch", allowed, s.TrackLaunched(agent(x, i)) == nil)
				if allowed {
					m.agent[x] = i
				}
			},
			"release": func(t *rapid.T) {
				p, x := pass.Draw(t, "pass"), session.Draw(t, "session")
				s.ReleaseGuard(p, x)
				if p == m.pass {
					delete(m.guard, x)
				}
			},
			"keepGuard": func(t *rapid.T) {
				x := session.Draw(t, "session")
				s.KeepGuard(x, "stuck")
				m.unstopped[x] = true
				delete(m.guard, x)
			},
			"closePass": func(t *rapid.T) {
				p := pass.Draw(t, "pass")
				s.ClosePass(p)
				m.closePass(p)
			},
			"drop": func(t *rapid.T) {
				x := session.Draw(t, "session")
				s.Drop(x)
				delete(m.agent, x)
			},
			"": func(t *rapid.T) {
				for _, x := range sessions {
					got := s.AdmitLaunch(x, false)
					var reason recovery.LaunchRefusal
					if got != nil {
						reason = got.LaunchRefusal
					}
					same(t, "refusal of "+x, m.refusal(x), reason)
					e, _ := s.Get(x)
					same(t, "agent of "+x, m.agent[x], e.InstanceID)
					same(t, "guarded "+x, m.guard[x] || m.unstopped[x], s.Guarded(x))
				}
			},
		})
	})
}

func same[T comparable](t *rapid.T, what string, want, got T) {
	if want != got {
		t.Fatalf("%s: want %v, got %v", what, want, got)
	}
}
