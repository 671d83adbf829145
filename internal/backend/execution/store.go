package execution

import (
	"cmp"
	"slices"
	"sync"

	"github.com/kandev/recovery/recovery"
)

// Store is the execution store of one boot. Its methods are atomic and safe for
// concurrent use.
type Store struct {
	mu sync.Mutex

	launches   bool  // some guards were taken, or there is nothing to guard
	pass       int64 // newest pass; 0 before the first
	passClosed bool

	guards     map[string]int64  // session → pass that holds its guard
	unstopped  map[string]string // session → instance that could not be stopped
	executions map[string]Execution
	kept       map[string]any // session → observation of the newest pass
}

// New returns a closed store: every launch that is not known to be passthrough
// is refused until TakeGuards or OpenLaunches (W-8).
func New() *Store {
	return &Store{
		guards:     make(map[string]int64),
		unstopped:  make(map[string]string),
		executions: make(map[string]Execution),
		kept:       make(map[string]any),
	}
}

// Taken says what TakeGuards found. The two are sorted and disjoint.
type Taken struct {
	// Guarded are the sessions whose guards the pass now holds.
	Guarded []string
	// Observed are those it must leave alone: tracked already, or kept away
	// for this boot's life by an agent that could not be stopped.
	Observed []string
}

// TakeGuards takes the guard of every session for the pass, in one step, and
// lets launches of all others begin (S-002.8, W-8). Repeating it within the
// pass changes nothing. A newer pass takes over what older ones hold and fences
// them; an older or closed one gets ErrFenced.
func (s *Store) TakeGuards(pass int64, sessions []string) (Taken, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pass < s.pass || pass == s.pass && s.passClosed {
		return Taken{}, ErrFenced
	}
	if pass > s.pass {
		s.fence(pass)
	}
	s.launches = true
	var taken Taken
	for _, session := range sessions {
		_, tracked := s.executions[session]
		_, blocked := s.unstopped[session]
		if tracked || blocked {
			taken.Observed = append(taken.Observed, session)
			continue
		}
		s.guards[session] = pass
		taken.Guarded = append(taken.Guarded, session)
	}
	slices.Sort(taken.Guarded)
	slices.Sort(taken.Observed)
	return taken, nil
}

// fence begins a newer pass. An execution that an older one tracked and did not
// finish publishing is forgotten, so that the newer pass does it again.
func (s *Store) fence(pass int64) {
	for session := range s.guards {
		delete(s.executions, session)
	}
	clear(s.guards)
	clear(s.kept)
	s.pass, s.passClosed = pass, false
}

// OpenLaunches lets launches begin when there is nothing to guard: the survival
// capability is off. It releases no guard.
func (s *Store) OpenLaunches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launches = true
}

// AdmitLaunch answers at once whether an agent of the session may be launched:
// nil, or why not. A passthrough session is never kept waiting by recovery
// (S-005.3).
func (s *Store) AdmitLaunch(session string, passthrough bool) *Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !passthrough {
		if refusal := s.recoveryRefusal(session); refusal != nil {
			return refusal
		}
	}
	if e, ok := s.executions[session]; ok {
		return &Refusal{LaunchRefusal: recovery.LaunchRefusedTracked, InstanceID: e.InstanceID}
	}
	return nil
}

func (s *Store) recoveryRefusal(session string) *Refusal {
	if instance, ok := s.unstopped[session]; ok {
		return &Refusal{LaunchRefusal: recovery.LaunchRefusedUnstopped, InstanceID: instance}
	}
	if _, guarded := s.guards[session]; guarded || !s.launches {
		return &Refusal{LaunchRefusal: recovery.LaunchRefusedRecovering}
	}
	return nil
}

// Track adds a re-tracked execution. It is the moment that decides whether a
// re-tracking was in time: once it succeeded, the rest of the publication may
// finish after the pass was closed. Errors: ErrFenced, ErrTracked, ErrNotGuarded. Repeating it with the same
// instance succeeds.
func (s *Store) Track(pass int64, e Execution) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pass != s.pass {
		return ErrFenced
	}
	if known, ok := s.executions[e.SessionID]; ok {
		if known.InstanceID != e.InstanceID {
			return ErrTracked
		}
		return nil
	}
	if s.passClosed {
		return ErrFenced
	}
	if s.guards[e.SessionID] != pass {
		return ErrNotGuarded
	}
	s.executions[e.SessionID] = e.clone()
	return nil
}

// TrackLaunched adds an execution that this boot launched. It returns a
// *Refusal when recovery holds the session meanwhile, ErrTracked when the
// session has another agent, and succeeds again for the same instance, which it
// then replaces.
func (s *Store) TrackLaunched(e Execution) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.executions[e.SessionID]; ok && known.InstanceID != e.InstanceID {
		return ErrTracked
	}
	if !e.Passthrough {
		if refusal := s.recoveryRefusal(e.SessionID); refusal != nil {
			return refusal
		}
	}
	s.executions[e.SessionID] = e.clone()
	return nil
}

// Get returns the session's execution, also while its publication is not
// finished; Guarded tells.
func (s *Store) Get(session string) (Execution, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.executions[session]
	return e.clone(), ok
}

// List returns all executions, by session id.
func (s *Store) List() []Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted(func(Execution) bool { return true })
}

// Drop forgets the session's execution. The agent itself is not touched.
func (s *Store) Drop(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.executions, session)
}

// DropInstance forgets the session's execution if it is that instance's, and
// reports whether it was.
func (s *Store) DropInstance(session, instance string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.executions[session]; !ok || e.InstanceID != instance {
		return false
	}
	delete(s.executions, session)
	return true
}

// DropServer forgets every execution on the control server, and returns them
// (O-002.3).
func (s *Store) DropServer(identity string) []Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped := s.sorted(func(e Execution) bool { return e.ServerIdentity == identity })
	for _, e := range dropped {
		delete(s.executions, e.SessionID)
	}
	return dropped
}

func (s *Store) sorted(want func(Execution) bool) []Execution {
	var out []Execution
	for _, e := range s.executions {
		if want(e) {
			out = append(out, e.clone())
		}
	}
	slices.SortFunc(out, func(a, b Execution) int { return cmp.Compare(a.SessionID, b.SessionID) })
	return out
}
