package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"

	"github.com/kandev/recovery/internal/transcript"
	"github.com/kandev/recovery/userapi"
)

func newEvents(f *flags) *cobra.Command {
	var after int64
	var follow bool
	cmd := &cobra.Command{
		Use:   "events SESSION",
		Short: "Show a session's transcript; with --follow also across restarts of the backend",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			show := func(e userapi.Event) error { return printEvent(cmd.OutOrStdout(), e, f.json) }
			if follow {
				return f.follow(cmd.Context(), args[0], after, show)
			}
			client, err := f.connect()
			if err != nil {
				return err
			}
			events, err := transcript.Read(cmd.Context(), client, args[0], after)
			if err != nil {
				return err
			}
			for _, e := range events {
				if err := show(e); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().Int64Var(&after, "after", 0, "begin after this position")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with new events until interrupted")
	return cmd
}

// reconnectInterval bounds how long a follower waits for the next backend's
// first answer.
const reconnectInterval = 2 * time.Second

// follow shows events until the context ends. When a backend goes away it goes
// on with the next one, after the last event shown.
func (f *flags) follow(ctx context.Context, id string, after int64, show func(userapi.Event) error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, reconnectInterval
	once := func() (struct{}, error) {
		client, err := f.connect()
		if err != nil {
			return struct{}{}, err
		}
		err = client.Events(ctx, id, after, func(e userapi.Event) error {
			if err := show(e); err != nil {
				return backoff.Permanent(err)
			}
			after = e.Position
			pause.Reset()
			return nil
		})
		var refused *userapi.Error
		if errors.As(err, &refused) && !refused.Retryable {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}
	_, err := backoff.Retry(ctx, once, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0))
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func printEvent(out io.Writer, e userapi.Event, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(e)
	}
	_, err := fmt.Fprintf(out, "%6d  %s  %-19s %s\n", e.Position, e.At.Local().Format(time.TimeOnly), e.Kind, e.Payload)
	return err
}
