package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/internal/bench"
)

func newBench() *cobra.Command {
	var opts bench.Options
	var file string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure recovery and the event plane, each beside a plain program",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			opts.Out = cmd.OutOrStdout()
			if opts.Logger, err = terminalLogger(); err != nil {
				return err
			}
			report, err := bench.Run(cmd.Context(), opts)
			if report != nil && file != "" {
				err = errors.Join(err, report.WriteJSON(file))
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&opts.Only, "only", nil, "what to measure: "+strings.Join(bench.Names(), ", ")+" (default all)")
	flags.IntSliceVar(&opts.Survivors, "survivors", []int{10, 100, 500}, "recovery: numbers of survivors, growing")
	flags.IntSliceVar(&opts.Instances, "instances", []int{1, 10, 100}, "throughput, latency: numbers of agents, growing")
	flags.IntSliceVar(&opts.Sizes, "sizes", []int{200, 64 << 10}, "throughput, latency: bytes of an update")
	flags.IntVar(&opts.Events, "events", 60_000, "throughput, drain: small updates in one round, over all agents")
	flags.IntVar(&opts.Rounds, "rounds", 3, "throughput: rounds, of which the median counts")
	flags.IntVar(&opts.Idle, "idle", 200, "memory: idle agents")
	flags.StringVar(&file, "json", "", "write every figure to this file")
	return cmd
}
