//go:build unix

package process

import (
	"bytes"
	"fmt"
	"os"
	"sync"

	"github.com/kandev/recovery/agentctl/wire"
)

// snapshot is the process table at one moment.
type snapshot struct {
	entries   []entry
	offspring map[int][]entry // by parent's pid
}

// pendingSnapshot is one that is being taken or waits to be.
type pendingSnapshot struct {
	done chan struct{}
	snapshot
	err error
}

// snapshots lets all who look at the same time share one reading of the table,
// so that stopping a thousand trees at once does not read it a thousand times.
var snapshots struct {
	taking sync.Mutex // held while one is taken
	mu     sync.Mutex
	next   *pendingSnapshot // begins after the one being taken; nil if none is asked for
}

// takeSnapshot returns the table as it is at some moment after the call.
func takeSnapshot() (snapshot, error) {
	snapshots.mu.Lock()
	p, first := snapshots.next, false
	if p == nil {
		p, first = &pendingSnapshot{done: make(chan struct{})}, true
		snapshots.next = p
	}
	snapshots.mu.Unlock()
	if first {
		p.take()
	}
	<-p.done
	return p.snapshot, p.err
}

// take begins by closing the snapshot to those who come later.
func (p *pendingSnapshot) take() {
	snapshots.taking.Lock()
	defer snapshots.taking.Unlock()
	snapshots.mu.Lock()
	snapshots.next = nil
	snapshots.mu.Unlock()
	defer close(p.done)
	entries, err := readTable()
	if err != nil {
		p.err = err
		return
	}
	p.snapshot, p.err = withMarkers(entries)
}

// markerIn finds the marker among NUL-separated variables.
func markerIn(env []byte) string {
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if marker, ok := bytes.CutPrefix(v, []byte(wire.EnvInstanceMarker+"=")); ok {
			return string(marker)
		}
	}
	return ""
}

// withMarkers reads the markers of processes younger than this one: what is
// older comes from no tree of ours.
func withMarkers(entries []entry) (snapshot, error) {
	self, err := readEntry(os.Getpid())
	if err != nil {
		return snapshot{}, fmt.Errorf("read own status: %w", err)
	}
	s := snapshot{entries: entries, offspring: map[int][]entry{}}
	for n := range entries {
		e := &entries[n]
		if !e.zombie && e.start >= self.start {
			if e.marker, err = readMarker(e.pid); err != nil {
				return snapshot{}, err
			}
		}
		s.offspring[e.ppid] = append(s.offspring[e.ppid], *e)
	}
	return s, nil
}
