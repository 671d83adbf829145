package fakeagent

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// grandchildArgument makes the program a grandchild instead of an agent.
const grandchildArgument = "grandchild"

// grandchildLife bounds a grandchild that nobody stops.
const grandchildLife = 10 * time.Minute

// beGrandchild waits to be killed, and ends by itself when its time is over.
func beGrandchild() {
	timer := time.NewTimer(grandchildLife)
	defer timer.Stop()
	<-timer.C
}

// spawnGrandchild starts a process that outlives the agent and holds its
// standard output and error open.
func (a *agent) spawnGrandchild(setsid bool) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	cmd := exec.Command(program, grandchildArgument)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = grandchildAttributes(setsid)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("spawn grandchild: %w", err)
	}
	return a.calls.append(Call{Method: MethodGrandchild, PID: cmd.Process.Pid})
}
