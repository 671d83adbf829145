package cli

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/userapi"
)

func newStatus(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how the backend is and what its recovery did",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			status, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), status, func(out io.Writer) error { return printStatus(out, status) })
		},
	}
}

func printStatus(out io.Writer, s userapi.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "phase\t%s\n", s.Phase)
	if s.WaitingFor != "" {
		fmt.Fprintf(w, "waiting for\t%s\n", s.WaitingFor)
	}
	fmt.Fprintf(w, "boot\t%s, since %s\n", s.BootID, s.StartedAt.Local().Format(time.DateTime))
	fmt.Fprintf(w, "installation\t%s\n", s.Installation)
	fmt.Fprintf(w, "agent survival\t%s\n", withReason(s.Survival.State, s.Survival.Reason))
	if c := s.Control; c != nil {
		origin := "started by this backend"
		if c.Adopted {
			origin = "adopted"
		}
		fmt.Fprintf(w, "control server\t%s (%s)\n", c.ServerIdentity, origin)
	}
	if k := s.KeepingAlive; k != nil {
		fmt.Fprintf(w, "keeping alive\t%s, last renewed %s (%s)\n",
			k.ServerIdentity, k.LastRenewal.Local().Format(time.DateTime), k.Means)
	}
	if r := s.Recovery; r != nil {
		fmt.Fprintf(w, "recovery\t%s\n", withReason(string(r.Verdict), string(r.Reason)))
		outcomes := make([]string, 0, len(r.Counts))
		for outcome, n := range r.Counts {
			outcomes = append(outcomes, fmt.Sprintf("%s\t%d", outcome, n))
		}
		slices.Sort(outcomes)
		for _, line := range outcomes {
			fmt.Fprintf(w, "  %s\n", line)
		}
		fmt.Fprintf(w, "  workflow\t%s (run %s)\n", r.WorkflowID, r.RunID)
		if r.FinishedAfterMS > 0 {
			fmt.Fprintf(w, "  finished after\t%s\n", time.Duration(r.FinishedAfterMS)*time.Millisecond)
		}
	}
	return w.Flush()
}

func withReason(word, reason string) string {
	if reason == "" {
		return word
	}
	return word + " (" + reason + ")"
}
