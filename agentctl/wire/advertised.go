package wire

import "strings"

// advertised is the comma-separated set that a control server built for a test
// advertises in place of its own, as one of an older or a newer build would. Only
// the linker sets it:
//
//	go build -ldflags "-X github.com/kandev/recovery/agentctl/wire.advertised=a,b"
var advertised string

// Advertised returns the capabilities that the control server of this build
// tells (O-001.11). It is Capabilities, except in a build made for a test.
func Advertised() []string {
	if advertised == "" {
		return Capabilities()
	}
	return strings.Split(advertised, ",")
}
