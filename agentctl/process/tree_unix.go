//go:build unix

package process

import (
	"os"
	"sync"
)

// tree finds the processes that come from one root.
type tree struct {
	root   processKey
	marker string

	mu    sync.Mutex
	known map[processKey]struct{} // members seen last, and the root
}

func newTree(root processKey, marker string) *tree {
	return &tree{root: root, marker: marker, known: map[processKey]struct{}{root: {}}}
}

// remember notes who belongs to the tree now. The root's end is the last moment
// at which its session is certainly its own. A table that cannot be read here
// is met again by the stop, which reports it.
func (t *tree) remember() {
	if table, err := takeSnapshot(); err == nil {
		t.know(t.find(table))
	}
}

// members returns who belongs to the tree now, zombies included.
func (t *tree) members() ([]entry, error) {
	table, err := takeSnapshot()
	if err != nil {
		return nil, err
	}
	members := t.find(table)
	t.know(members)
	return members, nil
}

func (t *tree) know(members []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = map[processKey]struct{}{t.root: {}}
	for _, m := range members {
		t.known[m.processKey] = struct{}{}
	}
}

// find returns those that are known, share the root's session or carry the
// marker, and all descendants of these.
func (t *tree) find(table snapshot) []entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	session := t.sessionHolds(table)
	var next []entry
	for _, e := range table.entries {
		if t.belongs(e, session) {
			next = append(next, e)
		}
	}
	seen := map[int]bool{os.Getpid(): true, 0: true, 1: true}
	var members []entry
	for len(next) > 0 {
		e := next[len(next)-1]
		next = next[:len(next)-1]
		if seen[e.pid] {
			continue
		}
		seen[e.pid] = true
		members = append(members, e)
		next = append(next, table.offspring[e.pid]...)
	}
	return members
}

// belongs judges one process by itself. Nothing older than the root comes from
// it.
func (t *tree) belongs(e entry, session bool) bool {
	if _, ok := t.known[e.processKey]; ok {
		return true
	}
	if e.start < t.root.start {
		return false
	}
	return session && e.session == t.root.pid || e.marker == t.marker
}

// sessionHolds reports whether the session with the root's number is still the
// root's: a known member is in it. Once a session is empty, its number may be
// given to a stranger.
func (t *tree) sessionHolds(table snapshot) bool {
	for _, e := range table.entries {
		if _, ok := t.known[e.processKey]; ok && e.session == t.root.pid {
			return true
		}
	}
	return false
}
