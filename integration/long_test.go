package integration

import "os"

// long reports whether whole matrices are wanted rather than what represents
// them.
func long() bool { return os.Getenv("RECOVERY_LONG") == "1" }
