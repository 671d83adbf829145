package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/userapi"
)

func newGit(f *flags) *cobra.Command {
	git := &cobra.Command{Use: "git", Short: "Ask git about a session's workspace"}
	git.AddCommand(newGitStatus(f), newGitDiff(f), newGitLog(f))
	return git
}

func newGitStatus(f *flags) *cobra.Command {
	var place userapi.Place
	cmd := &cobra.Command{
		Use:   "status SESSION",
		Short: "List what differs from the newest commit",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			status, err := client.GitStatus(cmd.Context(), args[0], place.Root)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), status, func(out io.Writer) error { return printChanges(out, status) })
		},
	}
	rootFlag(cmd, &place)
	return cmd
}

func printChanges(out io.Writer, status userapi.GitStatus) error {
	_, err := fmt.Fprintf(out, "branch %s, commit %s\n", orNone(status.Branch), orNone(status.Commit))
	for _, c := range status.Changes {
		if err != nil {
			return err
		}
		if c.From == "" {
			_, err = fmt.Fprintf(out, "%s%s %q\n", c.Index, c.Worktree, c.Path)
		} else {
			_, err = fmt.Fprintf(out, "%s%s %q, before %q\n", c.Index, c.Worktree, c.Path, c.From)
		}
	}
	if status.Truncated && err == nil {
		_, err = fmt.Fprintln(out, "… there are more changes than can be listed")
	}
	return err
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func newGitDiff(f *flags) *cobra.Command {
	var place userapi.Place
	var staged bool
	cmd := &cobra.Command{
		Use:   "diff SESSION [PATH]",
		Short: "Print a patch of what is not staged, or of what is",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			place.Path = pathOf(args)
			diff, err := client.GitDiff(cmd.Context(), args[0], place, staged)
			if err != nil {
				return err
			}
			if diff.Truncated {
				fmt.Fprintln(cmd.ErrOrStderr(), "the patch is not complete; name a path to narrow it down")
			}
			return f.print(cmd.OutOrStdout(), diff, func(out io.Writer) error {
				_, err := out.Write(diff.Patch)
				return err
			})
		},
	}
	rootFlag(cmd, &place)
	cmd.Flags().BoolVar(&staged, "staged", false, "what is staged, instead of what is not")
	return cmd
}

func newGitLog(f *flags) *cobra.Command {
	var place userapi.Place
	var skip, limit int64
	cmd := &cobra.Command{
		Use:   "log SESSION [PATH]",
		Short: "List commits, the newest first",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			place.Path = pathOf(args)
			log, err := client.GitLog(cmd.Context(), args[0], place, skip, limit)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), log, func(out io.Writer) error { return printLog(out, log) })
		},
	}
	rootFlag(cmd, &place)
	cmd.Flags().Int64Var(&skip, "skip", 0, "how many of the newest commits to leave out")
	cmd.Flags().Int64Var(&limit, "limit", 20, "how many commits to list")
	return cmd
}

func printLog(out io.Writer, log userapi.GitLog) error {
	for _, c := range log.Commits {
		_, err := fmt.Fprintf(out, "%.12s  %s  %q  %q\n", c.ID, c.At.Local().Format(time.DateTime), c.Author, c.Subject)
		if err != nil {
			return err
		}
	}
	return nil
}
