package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/internal/demo"
)

// errBroken: the demo ran and a promise was not kept.
var errBroken = errors.New("a promise was broken")

func newDemo() *cobra.Command {
	var opts demo.Options
	var file string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show that agents survive the loss of their backend, and measure it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			opts.Out = cmd.OutOrStdout()
			if opts.Logger, err = terminalLogger(); err != nil {
				return err
			}
			return runDemo(cmd, opts, file)
		},
	}
	cmd.Flags().IntVar(&opts.Agents, "agents", 4, fmt.Sprintf("how many agents, up to %d", demo.MaxAgents))
	cmd.Flags().BoolVar(&opts.Graceful, "graceful", false, "ask the backend to end instead of killing it")
	cmd.Flags().BoolVar(&opts.Chaos, "chaos", false, "kill more backends at random moments, most of them while they recover")
	cmd.Flags().IntVar(&opts.Rounds, "rounds", 20, fmt.Sprintf("how many backends the chaos kills, up to %d", demo.MaxRounds))
	cmd.Flags().Uint32Var(&opts.Seed, "seed", 0, "of the chaos; 0 draws one, which is printed")
	cmd.MarkFlagsMutuallyExclusive("chaos", "graceful")
	cmd.Flags().BoolVar(&opts.Keep, "keep", false, "leave everything running until Ctrl-C, to look at Temporal's UI")
	cmd.Flags().StringVar(&file, "json", "", "write every figure to this file")
	return cmd
}

func runDemo(cmd *cobra.Command, opts demo.Options, file string) error {
	report, err := demo.Run(cmd.Context(), opts)
	if report == nil {
		return err
	}
	if file != "" {
		err = errors.Join(err, report.WriteJSON(file))
	}
	if err == nil && !report.OK {
		err = fmt.Errorf("%w: %s", errBroken, report.BrokenPromises[0])
	}
	return err
}
