package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kandev/recovery/userapi"
)

// MaxRounds is the most that a run with chaos takes.
const MaxRounds = 1000

// oneIn is how many rounds there are, on average, for one whose recovery may
// finish.
const oneIn = 5

// round is what is done with one backend: it is killed after a part of the time
// that a recovery takes, or once it has recovered and accepted a prompt.
type round struct {
	finish bool
	part   float64 // of a recovery's time, 0 to 1
	pick   int     // chooses the session that is prompted
}

// plan draws the rounds. The same seed draws the same ones. The first may finish:
// it tells how long a recovery takes here.
func plan(seed uint32, rounds int) []round {
	random := rand.New(rand.NewPCG(uint64(seed), uint64(seed)))
	all := make([]round, rounds)
	for i := range all {
		all[i] = round{finish: random.IntN(oneIn) == 0 || i == 0, part: random.Float64(), pick: random.IntN(MaxAgents)}
	}
	return all
}

// seedOf draws a seed where the reader gave none.
func seedOf(given uint32) uint32 {
	if given != 0 {
		return given
	}
	return 1 + rand.Uint32N(1<<31-1)
}

// errEndedByItself: a backend ended that nobody had killed.
var errEndedByItself = errors.New("the backend ended by itself while it recovered")

// chaos starts and kills one backend after another, most of them while they
// recover, and returns when the last one was killed. The agents work on.
func (r *run) chaos(ctx context.Context) (killed time.Time, err error) {
	r.report.Seed = seedOf(r.opts.Seed)
	r.say("killing %d more backends at random moments (--seed %d)", r.opts.Rounds, r.report.Seed)
	var span time.Duration
	for _, round := range plan(r.report.Seed, r.opts.Rounds) {
		r.report.Rounds++
		if round.finish {
			var took time.Duration
			took, err = r.finishes(ctx, round)
			span = max(span, took)
		} else {
			err = r.interrupted(ctx, time.Duration(round.part*float64(span)))
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("round %d: %w", r.report.Rounds, err)
		}
		killed = time.Now()
	}
	// What the final recovery must show of each kind takes for granted that the
	// turns that were begun in between have ended.
	return killed, r.awaitAgents(ctx, "prompts in between answered", patience, func(s *session, p produced) bool {
		return p.Ends >= s.before.Ends+len(s.between)
	})
}

// finishes lets a backend recover, prompts a session that is idle, and kills the
// backend as soon as it has accepted the prompt. It returns how long the recovery
// took.
func (r *run) finishes(ctx context.Context, drawn round) (took time.Duration, err error) {
	if err := r.StartBackend(ctx); err != nil {
		return 0, err
	}
	if err := r.awaitPhase(ctx); err != nil {
		return 0, err
	}
	took = time.Since(r.Backend.StartedAt)
	views, err := r.views(ctx)
	if err != nil {
		return 0, err
	}
	var idle []*session
	for _, s := range r.sessions {
		if views[s.id].ended(s.newest()) {
			idle = append(idle, s)
		}
	}
	prompted := "nobody to prompt"
	if len(idle) > 0 {
		s := idle[drawn.pick%len(idle)]
		s.between = append(s.between, fmt.Sprintf("demo-between-%d", len(s.between)+1))
		if err := r.prompt(ctx, s, s.newest(), again); err != nil {
			return 0, err
		}
		prompted = "prompted " + s.id
	}
	r.say("  round %d: recovered after %s, %s, killed", r.report.Rounds, took.Round(time.Millisecond), prompted)
	return took, r.Backend.Kill()
}

// interrupted starts a backend and kills it after the delay, whether it answers
// by then or not.
func (r *run) interrupted(ctx context.Context, delay time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, delay)
	defer cancel()
	err := r.StartBackend(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		// What does not answer in time is killed by the stack.
		r.killedDuring(delay, "starting")
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case <-limited.Done():
	case <-r.Backend.Exited():
		return errEndedByItself
	}
	status, err := r.Backend.Client.Status(ctx)
	if err != nil {
		return err
	}
	r.killedDuring(delay, status.Phase)
	return r.Backend.Kill()
}

func (r *run) killedDuring(delay time.Duration, phase userapi.Phase) {
	if phase != userapi.PhaseServing {
		r.report.KillsDuringRecovery++
	}
	r.say("  round %d: killed after %s, %s", r.report.Rounds, delay.Round(time.Millisecond), phase)
}
