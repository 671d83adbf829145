// Package instance supervises agents: it starts each as a process tree, opens
// its conversation exactly once, keeps its events, turns and last outcome, and
// stops it with everything that it started.
//
// An instance lives through
//
//	starting → ready → exited
//	    └→ failed
//	any → stopping → gone, leaving a tombstone
//
// It becomes failed or exited only once its tree is gone and all that its
// output held is recorded; until then it counts as alive. One whose processes
// survive stays listed as stopping.
package instance
