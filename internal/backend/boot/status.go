package boot

import (
	"sync"
	"time"

	"github.com/kandev/recovery/activities/calls"
	"github.com/kandev/recovery/internal/backend/keepalive"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/userapi"
)

// status is what the status page shows.
type status struct {
	started time.Time

	mu     sync.Mutex
	shown  userapi.Status
	owner  *owner.Owner
	keeper *keepalive.Keeper
}

func newStatus(cfg Config, survival userapi.Survival) *status {
	s := &status{started: time.Now()}
	s.shown = userapi.Status{
		BootID: cfg.BootID, Installation: cfg.Home.Installation(), StartedAt: s.started,
		Phase: userapi.PhaseWaitingPostgres, WaitingFor: postgres, Survival: survival,
	}
	return s
}

// page returns the status of this moment.
func (s *status) page() userapi.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := s.shown
	if s.shown.Recovery != nil {
		pass := *s.shown.Recovery
		shown.Recovery = &pass
	}
	if s.keeper != nil {
		if kept, ok := s.keeper.State(); ok {
			shown.KeepingAlive = &userapi.KeepingAlive{
				ServerIdentity: kept.ServerIdentity, Since: kept.Since, LastRenewal: kept.LastRenewal, Means: string(kept.Means),
			}
		}
	}
	if s.owner != nil {
		if server, renewed, err := s.owner.LastRenewal(); err == nil {
			shown.Control = &userapi.Control{ServerIdentity: server.Identity, Adopted: server.Adopted, LastRenewal: &renewed}
		}
	}
	return shown
}

func (s *status) change(f func(*userapi.Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.shown)
}

func (s *status) waiting(phase userapi.Phase, what string) {
	s.change(func(shown *userapi.Status) { shown.Phase, shown.WaitingFor = phase, what })
}

func (s *status) watch(o *owner.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = o
}

func (s *status) keeping(k *keepalive.Keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeper = k
}

func (s *status) passStarted(workflowID, runID string) {
	s.change(func(shown *userapi.Status) {
		pass := recoveryOf(shown)
		pass.WorkflowID, pass.RunID = workflowID, runID
	})
}

// recoveryOf returns the pass of the page: its start and its end are reported
// by two goroutines, in any order.
func recoveryOf(shown *userapi.Status) *userapi.RecoveryPass {
	if shown.Recovery == nil {
		shown.Recovery = &userapi.RecoveryPass{}
	}
	return shown.Recovery
}

// passReported takes over how the pass stands. The time of the first report is
// when users are served again.
func (s *status) passReported(report calls.AdoptionReport) {
	s.change(func(shown *userapi.Status) {
		pass := recoveryOf(shown)
		if pass.Counts == nil {
			pass.FinishedAfterMS = time.Since(s.started).Milliseconds()
		}
		pass.Verdict, pass.Reason, pass.Counts = report.Verdict, report.Reason, report.Counts
		pass.MissingCapabilities, pass.UnendedServer = report.Missing, report.UnendedServer
		pass.Stopped, pass.Unstopped = report.Stopped, report.Unstopped
		pass.Others = nil
		for _, o := range report.Others {
			pass.Others = append(pass.Others, userapi.SessionOutcome{
				SessionID: o.SessionID, Outcome: o.Outcome, InstanceID: o.Instance, Detail: o.Detail,
			})
		}
	})
}

func (s *status) serving() { s.waiting(userapi.PhaseServing, "") }
