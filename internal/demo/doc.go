// Package demo shows, with real processes, that agents survive the loss of
// their backend, and measures it: it starts sessions of four kinds in git
// worktrees, ends the backend in the middle of their turns, starts another one
// and compares what the agents recorded themselves with what the backend has.
package demo
