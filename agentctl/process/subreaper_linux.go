package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// subreaper is set once orphans of this process's tree come to it.
var subreaper atomic.Bool

// BecomeSubreaper makes orphaned descendants children of this process, for its
// whole life. They then have to be collected, which a Reaper does. It does
// nothing on other systems.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	subreaper.Store(true)
	return nil
}

// Reaper collects adopted orphans when they end, each by its own pid, so that
// none stays a zombie and no child of anybody else's is taken. It acts only in
// a process that became a subreaper.
type Reaper struct {
	signals chan os.Signal
	done    chan struct{}
	wg      sync.WaitGroup
}

// StartReaper starts a Reaper; Close ends it.
func StartReaper(logger *zap.Logger) *Reaper {
	r := &Reaper{signals: make(chan os.Signal, 1), done: make(chan struct{})}
	signal.Notify(r.signals, unix.SIGCHLD)
	r.wg.Go(func() { r.run(logger) })
	return r
}

// Close ends the Reaper and waits for it.
func (r *Reaper) Close() {
	signal.Stop(r.signals)
	close(r.done)
	r.wg.Wait()
}

func (r *Reaper) run(logger *zap.Logger) {
	for {
		select {
		case <-r.done:
			return
		case <-r.signals:
			if err := reapAdopted(); err != nil {
				logger.Warn("orphans not collected", zap.Error(err))
			}
		}
	}
}

// reapAdopted collects the orphans that have ended. A zombie was adopted if it
// is in another session than we are: what this program starts by other means
// than this package stays in ours, and nobody enters a foreign one.
func reapAdopted() error {
	session, err := unix.Getsid(0)
	if err != nil {
		return fmt.Errorf("read own session: %w", err)
	}
	table, err := takeSnapshot()
	if err != nil {
		return err
	}
	var adopted []entry
	for _, e := range table.offspring[os.Getpid()] {
		if e.session != session {
			adopted = append(adopted, e)
		}
	}
	return collectOrphans(adopted)
}

// collectOrphans collects those of the given processes that are zombies of ours
// and were not started by this package, whose callers wait for their own.
func collectOrphans(entries []entry) error {
	if !subreaper.Load() {
		return nil
	}
	spawning.Lock()
	defer spawning.Unlock()
	var errs []error
	for _, e := range entries {
		if !e.zombie {
			continue
		}
		now, err := readEntry(e.pid)
		if errors.Is(err, ErrNoProcess) {
			continue
		}
		if err == nil && now.processKey == e.processKey && now.zombie && now.ppid == os.Getpid() && !isSpawned(e.pid) {
			err = collect(e.pid)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func collect(pid int) error {
	for {
		_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil, errors.Is(err, unix.ECHILD):
			return nil
		}
		return fmt.Errorf("collect orphan %d: %w", pid, err)
	}
}
