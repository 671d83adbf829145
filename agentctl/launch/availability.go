package launch

import "runtime"

// ReasonPlatform is the machine-readable reason on a platform where a control
// server cannot outlive its backend (S-005.4).
const ReasonPlatform = "platform_unsupported"

// Availability reports whether a control server can outlive this process here,
// and if not, a machine-readable reason (S-005.4, B-3).
func Availability() (ok bool, reason string) {
	if runtime.GOOS == "windows" {
		return false, ReasonPlatform
	}
	return true, ""
}
