package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/internal/stack"
	"github.com/kandev/recovery/userapi"
)

func newUp(f *flags) *cobra.Command {
	var survival bool
	opts := stack.Options{Surroundings: os.Environ(), TemporalPort: 7233, UIPort: 8233}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run Postgres, Temporal and the backend until interrupted",
		Long: "Runs a private Postgres, Temporal's development server and the backend, and ends them on Ctrl-C.\n" +
			"Temporal's development server has no authentication: use this on a single-user machine only.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			opts.Home = f.home
			if cmd.Flags().Changed("agent-survival") {
				opts.Settings = map[string]string{stack.EnvAgentSurvival: strconv.FormatBool(survival)}
			}
			if opts.Logger, err = terminalLogger(); err != nil {
				return err
			}
			return up(cmd.Context(), opts, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&survival, "agent-survival", false, "agents survive the backend (default: as configured)")
	cmd.Flags().BoolVar(&opts.LeaveAgents, "leave-agents", false, "on Ctrl-C leave the control server and its agents running")
	return cmd
}

// errEnded: something that must run as long as the stack does has ended.
var errEnded = errors.New("ended unexpectedly")

func up(ctx context.Context, opts stack.Options, out io.Writer) error {
	fmt.Fprintln(out, "starting Postgres and Temporal …")
	s, err := stack.Start(ctx, opts)
	if err != nil {
		return err
	}
	err = serve(ctx, s, out)
	fmt.Fprintln(out, "stopping …")
	return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
}

// serve runs the backend until the context ends.
func serve(ctx context.Context, s *stack.Stack, out io.Writer) error {
	fmt.Fprintln(out, "starting the backend …")
	b, err := s.StartBackend(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "backend      http://%s\n", b.Address)
	fmt.Fprintf(out, "Temporal     %s\n", s.TemporalAddress())
	fmt.Fprintf(out, "Temporal UI  %s (no authentication: for a single-user machine)\n", s.TemporalUI())
	if err := untilEnd(ctx, s, b, out); err != nil {
		return errors.Join(err, b.Stop(context.WithoutCancel(ctx)))
	}
	return b.Stop(context.WithoutCancel(ctx))
}

const phaseInterval = 100 * time.Millisecond

// untilEnd tells the backend's phases until it serves, and returns when the
// context ends, or with an error when something else did.
func untilEnd(ctx context.Context, s *stack.Stack, b *stack.Backend, out io.Writer) error {
	tick := time.NewTicker(phaseInterval)
	defer tick.Stop()
	var told userapi.Phase
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.Exited():
			return fmt.Errorf("the backend %w; see %s", errEnded, s.BackendLog())
		case <-s.TemporalExited():
			return fmt.Errorf("the Temporal server %w", errEnded)
		case <-tick.C:
		}
		if told == userapi.PhaseServing {
			continue
		}
		// A backend that does not answer now is asked again.
		status, err := b.Client.Status(ctx)
		if err == nil && status.Phase != told {
			told = status.Phase
			tell(out, told)
		}
	}
}

func tell(out io.Writer, phase userapi.Phase) {
	if phase == userapi.PhaseServing {
		fmt.Fprintln(out, "ready; Ctrl-C ends it")
		return
	}
	fmt.Fprintf(out, "the backend is %s …\n", strings.ReplaceAll(string(phase), "_", " "))
}
