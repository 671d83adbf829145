package execution

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kandev/recovery/recovery"
)

// Execution is one agent that this boot drives, with the values that
// re-tracking restored (S-002.3).
type Execution struct {
	SessionID         string
	TaskID            string
	InstanceID        string
	Generation        int64
	ServerIdentity    string
	Passthrough       bool
	PID               int
	ProfileID         string
	Agent             string
	Command           []string
	HistoryMode       string
	ProviderSessionID string
	TaskEnvironmentID string
	RunID             string
	RunEnv            map[string]string
	// Roots bound what file operations may reach. None means the workspace
	// only, never "no restriction" (S-002.5).
	Roots []string
}

func (e Execution) clone() Execution {
	e.Command = slices.Clone(e.Command)
	e.Roots = slices.Clone(e.Roots)
	e.RunEnv = maps.Clone(e.RunEnv)
	return e
}

// Errors of the store.
var (
	// ErrFenced: the pass was closed, or a newer one took its guards over.
	ErrFenced = errors.New("the recovery pass is over")
	// ErrNotGuarded: the pass holds no guard of the session.
	ErrNotGuarded = errors.New("the recovery pass holds no guard of this session")
	// ErrTracked: the session has another agent.
	ErrTracked = errors.New("the session already has an agent")
)

// Refusal says why a launch may not happen now. InstanceID names the agent in
// the way, where there is one.
type Refusal struct {
	recovery.LaunchRefusal
	InstanceID string
}

// Error says the reason.
func (r *Refusal) Error() string {
	if r.InstanceID == "" {
		return fmt.Sprintf("launch refused: %s", r.LaunchRefusal)
	}
	return fmt.Sprintf("launch refused: %s (instance %s)", r.LaunchRefusal, r.InstanceID)
}
