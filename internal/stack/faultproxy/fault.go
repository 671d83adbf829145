//go:build unix

package faultproxy

// Kind says where a connection is cut.
type Kind string

// Kinds of faults. A zero Kind is none. A commit is what a COMMIT asks for, and
// the end of a request outside of any transaction.
const (
	// BeforeCommit: the server has all of the transaction but what commits it.
	BeforeCommit Kind = "before commit"
	// AtCommit: that was sent too, and nobody waits for the answer.
	AtCommit Kind = "at commit"
	// AfterCommit: the server has answered that it committed, and the client
	// does not get that answer.
	AfterCommit Kind = "after commit"
	// ToServer and ToClient: in the middle of what goes that way.
	ToServer Kind = "to server"
	ToClient Kind = "to client"
)

// Fault is what becomes of one connection. After is how much of it goes well
// before: commits for the first three kinds, bytes for the others.
type Fault struct {
	Kind  Kind
	After int
}

// atCommit reports whether the fault is of the kind, and due at that commit.
func (f Fault) atCommit(kind Kind, commits int) bool { return f.Kind == kind && commits > f.After }

// room is how many of n bytes go through that way when passed did already, and
// whether the connection is cut behind them.
func (f Fault) room(way Kind, passed, n int) (through int, cut bool) {
	if f.Kind != way || passed+n <= f.After {
		return n, false
	}
	return max(0, f.After-passed), true
}
