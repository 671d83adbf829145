package demo

import (
	"fmt"
	"time"
)

// Kind says what a session is doing when the backend goes away.
type Kind string

// Kinds, in the order in which sessions get them.
const (
	KindStream Kind = "streams"   // streams through the outage
	KindEnd    Kind = "ends turn" // its turn ends during the outage
	KindAsk    Kind = "asks"      // asks permission during the outage
	KindIdle   Kind = "idle"      // has no open turn
)

var kinds = []Kind{KindStream, KindEnd, KindAsk, KindIdle}

func kindOf(index int) Kind { return kinds[index%len(kinds)] }

// gates are files that the scripts wait for; the demo creates them.
type gates struct{ outage, finish string }

// opening is how many updates a session streams before it waits.
const opening = 10

// script is the prompt that a session works on when the backend goes away.
func script(kind Kind, g gates, every time.Duration) string {
	switch kind {
	case KindStream:
		return fmt.Sprintf("stream until file %q every %s", g.finish, every)
	case KindEnd:
		return fmt.Sprintf("stream %d every %s; wait file %q; stream 20 every %s; end", opening, every, g.outage, every)
	case KindAsk:
		return fmt.Sprintf("stream %d every %s; wait file %q; stream 10 every %s; ask; stream 10; end", opening, every, g.outage, every)
	default:
		return fmt.Sprintf("stream %d; end", opening)
	}
}

// again is the prompt that every session gets once more after the recovery.
const again = "stream 5; say \"still here\"; end"

// streamInterval is slower with many agents, so that two processor cores are
// kept busy by recovery rather than by the agents' chatter.
func streamInterval(agents int) time.Duration {
	return max(20*time.Millisecond, time.Duration(agents)*time.Millisecond)
}
