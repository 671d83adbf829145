// Package process starts an agent in a session of its own and ends it with
// everything that it started (B-6).
//
// On Linux the tree of a process is every descendant, every member of its
// session and every process that carries its marker in the environment, so
// that a descendant that changed group, session or parent is found as well.
// What escapes is only a process that left the session, lost its parent and
// emptied its environment. With BecomeSubreaper orphans come back to this
// process, and a Reaper collects them by their own pid. On macOS the same rules
// hold as far as the kernel tells: process groups stand in for sessions. On
// Windows only the process itself is ended.
//
// A pid is never signalled without its start time (B-12), and nothing here
// waits for a pipe that a grandchild may hold.
package process
