// Command fakeagent is a scripted ACP agent for tests and the demo: the text
// of a prompt is its script. See internal/fakeagent for the instructions.
package main

import (
	"os"

	"github.com/kandev/recovery/internal/fakeagent"
)

func main() {
	os.Exit(fakeagent.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
