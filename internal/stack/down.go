package stack

import (
	"context"
	"errors"
	"os"

	"go.uber.org/zap"
)

// Down ends the stack of a home from another process than the one that started
// it, also when that one is gone. The control server and its agents end too,
// unless they are to be left. ErrNotUp means that there was nothing to end.
func Down(ctx context.Context, home string, leaveAgents bool, logger *zap.Logger) error {
	s, err := readState(home)
	if err != nil {
		return err
	}
	if err := s.Up.end(ctx); err != nil {
		return err
	}
	lock, err := acquire(home)
	if err != nil {
		return err
	}
	// What the other process left undone is in its last word.
	s, err = readState(home)
	if errors.Is(err, ErrNotUp) {
		return lock.Unlock()
	}
	if err == nil {
		err = finish(ctx, s, leaveAgents, logger)
	}
	return errors.Join(err, lock.Unlock())
}

func finish(ctx context.Context, s state, leaveAgents bool, logger *zap.Logger) error {
	// The backend's lock on the home directory must be free before its one-shot
	// command runs.
	if err := s.Backend.end(ctx); err != nil {
		return err
	}
	var errs []error
	cluster, err := startPostgres(ctx, s.Data, logger)
	if err != nil {
		errs = append(errs, err)
	} else {
		if !leaveAgents {
			opts := Options{Home: s.Home, Surroundings: os.Environ()}
			errs = append(errs, endControlServer(ctx, s.Program, opts.environment(cluster.DSN, "")))
		}
		errs = append(errs, cluster.Stop(ctx))
	}
	errs = append(errs, s.Temporal.end(ctx))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.ended(leaveAgents)
}
