package execution

// Guarded reports whether recovery holds the session: its pass has not settled
// it, or an agent of it could not be stopped.
func (s *Store) Guarded(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, guarded := s.guards[session]
	_, blocked := s.unstopped[session]
	return guarded || blocked
}

// ReleaseGuard lets go of the session, whose outcome is published. It does
// nothing when the guard is not the pass's any more.
func (s *Store) ReleaseGuard(pass int64, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held, ok := s.guards[session]; !ok || held != pass {
		return
	}
	delete(s.guards, session)
	if _, tracked := s.executions[session]; !tracked {
		delete(s.kept, session)
	}
}

// KeepGuard keeps launches of the session away for this boot's life, because
// the instance could not be stopped (S-002.16). It outlasts every pass. The
// first instance that it is kept for is the one that refusals name.
func (s *Store) KeepGuard(session, instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, kept := s.unstopped[session]; !kept {
		s.unstopped[session] = instance
	}
	delete(s.guards, session)
	delete(s.kept, session)
}

// ClosePass ends the pass in one step: what it did not track so far it can track
// no more (S-003.7). Its guards stay, so that no launch slips in before the
// sessions are settled; ReleaseGuard and KeepGuard end them. It does nothing for a
// pass that a newer one fenced, and may be repeated.
func (s *Store) ClosePass(pass int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pass < s.pass {
		return
	}
	if pass > s.pass {
		s.fence(pass)
	}
	s.passClosed = true
}

// Keep remembers what the pass observed of a session, until a newer pass. It may
// hold secrets, which is why it is here and not in a workflow's history. It
// outlasts the session's publication, which may be repeated. An observation of a
// pass that is over is dropped.
func (s *Store) Keep(pass int64, session string, observation any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pass == s.pass && !s.passClosed {
		s.kept[session] = observation
	}
}

// Kept returns what the pass observed of the session.
func (s *Store) Kept(pass int64, session string) (any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pass != s.pass {
		return nil, false
	}
	observation, ok := s.kept[session]
	return observation, ok
}
