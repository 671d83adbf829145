package launch

import (
	"errors"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// spawn is not available: a child inherits no numbered descriptors here.
func spawn(string, wire.StartConfig, *zap.Logger) (*child, error) {
	return nil, errors.New(ReasonPlatform)
}
