// Package crashpoint names the moments at which a test may kill the process, or
// have it wait. In a build with the tag "crashpoints", Hit kills the process when
// its name is the value of KANDEV_CRASH_AT; in every other build it does nothing.
// Tests use it to prove what a crash at exactly that moment leaves behind, and
// what happens when something else comes about at exactly that moment.
package crashpoint

// EnvAt selects the point at which a tagged build kills itself. With EnvOnce,
// the path of a file that does not exist yet, only the first process that gets
// there dies: it creates the file before.
const (
	EnvAt   = "KANDEV_CRASH_AT"
	EnvOnce = "KANDEV_CRASH_ONCE"
)

// EnvHoldAt selects the point at which a tagged build waits, the first time that
// it gets there. It connects to EnvHoldBy, a TCP address, and goes on when that
// connection ends.
const (
	EnvHoldAt = "KANDEV_HOLD_AT"
	EnvHoldBy = "KANDEV_HOLD_BY"
)
