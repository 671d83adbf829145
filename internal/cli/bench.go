package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/internal/bench"
)

func newBench() *cobra.Command {
	var opts bench.Options
	var file string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure recovery beside the same reads by a plain program",
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
	cmd.Flags().IntSliceVar(&opts.Survivors, "survivors", []int{10, 100, 500}, "numbers of survivors, growing")
	cmd.Flags().StringVar(&file, "json", "", "write every figure to this file")
	return cmd
}
