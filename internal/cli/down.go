package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/internal/stack"
)

func newDown(f *flags) *cobra.Command {
	var leave bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End what `up` started, also when its terminal is gone",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := terminalLogger()
			if err != nil {
				return err
			}
			if err := stack.Down(cmd.Context(), f.home, leave, logger); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "down")
			return nil
		},
	}
	cmd.Flags().BoolVar(&leave, "leave-agents", false, "leave the control server and its agents running")
	return cmd
}
