package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/userapi"
)

func newProfile(f *flags) *cobra.Command {
	profile := &cobra.Command{Use: "profile", Short: "Say how agents are started"}
	profile.AddCommand(newProfilePut(f))
	return profile
}

func newProfilePut(f *flags) *cobra.Command {
	var p userapi.Profile
	cmd := &cobra.Command{
		Use:     "put ID -- COMMAND [ARGUMENT …]",
		Short:   "Create or replace a profile",
		Example: "  recoveryctl profile put claude --env LANG=C.UTF-8 -- claude-code-acp",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.ID, p.Command = args[0], args[1:]
			if p.Agent == "" {
				p.Agent = p.ID
			}
			client, err := f.connect()
			if err != nil {
				return err
			}
			if err := client.PutProfile(cmd.Context(), p); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), p.ID)
			return nil
		},
	}
	cmd.Flags().StringVar(&p.Agent, "agent", "", "name of the agent (default: the profile's id)")
	cmd.Flags().StringToStringVar(&p.Env, "env", nil, "environment of the agent, NAME=VALUE; not for secrets")
	return cmd
}
