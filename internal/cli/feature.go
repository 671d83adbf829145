package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/userapi"
)

func newFeature(f *flags) *cobra.Command {
	feature := &cobra.Command{Use: "feature", Short: "Look at a capability, or turn it on or off"}
	feature.AddCommand(newAgentSurvival(f))
	return feature
}

func newAgentSurvival(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:       "agent-survival [on|off]",
		Short:     "Whether agents survive their backend; a change acts at its next start",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"on", "off"},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			var setting userapi.SurvivalSetting
			if len(args) == 0 {
				setting, err = client.Survival(cmd.Context())
			} else {
				setting, err = client.SetSurvival(cmd.Context(), args[0] == "on")
			}
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), setting, func(out io.Writer) error { return printSurvival(out, setting) })
		},
	}
}

func printSurvival(out io.Writer, s userapi.SurvivalSetting) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "in force\t%s\n", withReason(s.InForce.State, s.InForce.Reason))
	fmt.Fprintf(w, "at the next start\t%s\n", withReason(s.NextStart.State, s.NextStart.Reason))
	if s.OverriddenBy != "" {
		fmt.Fprintf(w, "overridden by\t%s, whatever the settings file says\n", s.OverriddenBy)
	}
	return w.Flush()
}
