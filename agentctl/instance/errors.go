package instance

import (
	"errors"
	"fmt"

	"github.com/kandev/recovery/agentctl/process"
	"github.com/kandev/recovery/agentctl/wire"
)

func refuse(code wire.Code, format string, args ...any) error {
	return &wire.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func notFound() error { return refuse(wire.CodeNotFound, "there is no such instance") }

// asWire passes a refusal on and turns any other error into one of the given
// code, whose text tells nothing of the host.
func asWire(err error, code wire.Code, message string) error {
	if err == nil {
		return nil
	}
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return refuse(code, "%s", message)
}

func spawnRefusal(err error) error {
	switch {
	case errors.Is(err, process.ErrCommandNotFound):
		return refuse(wire.CodeInvalidCommand, "the agent's command does not exist or is not executable")
	case errors.Is(err, process.ErrWorkspace):
		return refuse(wire.CodeInvalidWorkspace, "the workspace is not a directory")
	}
	return asWire(err, wire.CodeInternal, "the agent could not be started")
}

func stopRefusal(err error) error {
	var survivors *process.SurvivorError
	if errors.As(err, &survivors) {
		return &wire.Error{
			Code:    wire.CodeStopFailed,
			Message: fmt.Sprintf("processes of the agent survived: %v", survivors.PIDs),
			Remedy:  "end these processes and stop the instance again",
		}
	}
	return asWire(err, wire.CodeStopFailed, "it cannot be told whether the agent's processes have ended")
}
