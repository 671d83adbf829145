package process

import (
	"os"
	"os/exec"
	"sync"
)

// spawning is held for reading while a child is started and entered in
// children, so that a Reaper never meets a child that is not entered yet.
var spawning sync.RWMutex

// children are those that this package started and has not collected.
var children = struct {
	sync.Mutex
	byPID map[int]*os.Process
}{byPID: map[int]*os.Process{}}

func spawn(cmd *exec.Cmd) error {
	spawning.RLock()
	defer spawning.RUnlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	children.Lock()
	defer children.Unlock()
	children.byPID[cmd.Process.Pid] = cmd.Process
	return nil
}

// wait collects a spawned child and forgets it, unless its pid has gone to a
// newer child meanwhile. The state is nil if it could not be collected.
func wait(child *os.Process) *os.ProcessState {
	state, err := child.Wait()
	children.Lock()
	defer children.Unlock()
	if children.byPID[child.Pid] == child {
		delete(children.byPID, child.Pid)
	}
	if err != nil {
		return nil
	}
	return state
}

func isSpawned(pid int) bool {
	children.Lock()
	defer children.Unlock()
	return children.byPID[pid] != nil
}
