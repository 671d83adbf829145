// Package transcript reads what a backend has committed of a session.
package transcript

import (
	"context"
	"errors"

	"github.com/kandev/recovery/userapi"
)

// errComplete ends a stream that would otherwise wait for further events.
var errComplete = errors.New("transcript complete")

// Read returns the session's committed events after the position, up to the
// newest at the time of the call. It ends early only with an error.
func Read(ctx context.Context, client *userapi.Client, id string, after int64) ([]userapi.Event, error) {
	session, err := client.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	if session.Position <= after {
		return nil, nil
	}
	var events []userapi.Event
	err = client.Events(ctx, id, after, func(e userapi.Event) error {
		events = append(events, e)
		if e.Position >= session.Position {
			return errComplete
		}
		return nil
	})
	if !errors.Is(err, errComplete) {
		return nil, err
	}
	return events, nil
}
