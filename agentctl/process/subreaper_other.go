//go:build !linux

package process

import "go.uber.org/zap"

// BecomeSubreaper does nothing here: orphans go to the system's first process.
func BecomeSubreaper() error { return nil }

// Reaper has nothing to collect here.
type Reaper struct{}

// StartReaper returns a Reaper that does nothing.
func StartReaper(*zap.Logger) *Reaper { return &Reaper{} }

// Close does nothing.
func (*Reaper) Close() {}

func collectOrphans([]entry) error { return nil }
