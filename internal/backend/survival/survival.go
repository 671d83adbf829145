// Package survival is the survival capability of a running backend: whether it is
// on, off or unavailable here, and its setting, which acts at the next start.
package survival

import (
	"errors"
	"io/fs"
	"sync"

	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/config"
	"github.com/kandev/recovery/userapi"
)

// Capability is the capability of one boot. It is safe for concurrent use.
type Capability struct {
	// InForce is the setting that this boot began with. Nothing changes it
	// (S-005.7).
	InForce bool
	// Availability reports whether a control server can outlive its backend here,
	// and if not, a machine-readable reason (S-005.4).
	Availability func() (ok bool, reason string)
	// Source is where the next start finds its settings.
	Source config.Source
	Logger *zap.Logger

	writing sync.Mutex
}

// Active reports whether agents survive this boot: the capability is on, and
// available. An unavailable one behaves as off (S-005.4).
func (c *Capability) Active() bool { return c.State().State == userapi.SurvivalOn }

// State tells on, off and unavailable apart (S-005.4).
func (c *Capability) State() userapi.Survival { return c.state(c.InForce) }

func (c *Capability) state(on bool) userapi.Survival {
	if available, reason := c.Availability(); !available {
		return userapi.Survival{State: userapi.SurvivalUnavailable, Reason: reason}
	}
	if on {
		return userapi.Survival{State: userapi.SurvivalOn}
	}
	return userapi.Survival{State: userapi.SurvivalOff}
}

// Setting returns what is in force, and what a start of now would find. The error
// is a *userapi.Error.
func (c *Capability) Setting() (userapi.SurvivalSetting, error) {
	next, err := config.ReadSurvival(c.Source)
	if err != nil {
		return userapi.SurvivalSetting{}, c.refusal(err)
	}
	return userapi.SurvivalSetting{
		InForce: c.State(), NextStart: c.state(next.On), OverriddenBy: next.OverriddenBy,
	}, nil
}

// Set writes the setting into the settings file and returns Setting. Turning it on
// where it is unavailable is refused with the reason as the code (S-005.4). The
// error is a *userapi.Error.
func (c *Capability) Set(on bool) (userapi.SurvivalSetting, error) {
	if available, reason := c.Availability(); on && !available {
		return userapi.SurvivalSetting{}, &userapi.Error{
			Code: userapi.Code(reason), Message: "agents cannot survive their backend here (" + reason + ")",
			Remedy: "leave the capability off, or run the backend where it is available",
		}
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := config.WriteSurvival(c.Source, on); err != nil {
		return userapi.SurvivalSetting{}, c.refusal(err)
	}
	setting, err := c.Setting()
	if err == nil {
		c.Logger.Info("agent survival set; it acts at the next start", zap.Bool("on", on), zap.String("overridden_by", setting.OverriddenBy))
	}
	return setting, err
}

// refusal says what to do about the settings file, whose path and content are for
// the log only.
func (c *Capability) refusal(err error) *userapi.Error {
	c.Logger.Warn("the settings file was not used", zap.Error(err))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &userapi.Error{
			Code: userapi.CodeDenied, Message: "the backend may not change the settings file",
			Remedy: "change features.agentSurvival in it by hand, or allow the backend's user to write it",
		}
	case errors.Is(err, config.ErrNotEditable):
		return &userapi.Error{
			Code: userapi.CodeConflict, Message: "the settings file cannot be edited by a program",
			Remedy: "change features.agentSurvival in it by hand",
		}
	default:
		return &userapi.Error{
			Code: userapi.CodeConflict, Message: "the settings file is not one that a backend would start with",
			Remedy: "mend it; the backend's log says what is wrong",
		}
	}
}
