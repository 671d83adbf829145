package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/userapi"
)

func newSession(f *flags) *cobra.Command {
	session := &cobra.Command{Use: "session", Short: "Create, show and drive sessions"}
	session.AddCommand(newCreate(f), newList(f), newShow(f), newPrompt(f), newAnswer(f),
		newAct(f, "cancel", "End the session's turn", (*userapi.Client).Cancel),
		newAct(f, "stop", "Stop the session's agent", (*userapi.Client).Stop),
		newEvents(f), newFiles(f), newGit(f))
	return session
}

func newCreate(f *flags) *cobra.Command {
	var req userapi.CreateSession
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a session and start its agent",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if req.Workspace, err = absolute(req.Workspace); err != nil {
				return err
			}
			client, err := f.connect()
			if err != nil {
				return err
			}
			s, err := client.CreateSession(cmd.Context(), req)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), s, func(out io.Writer) error {
				_, err := fmt.Fprintln(out, s.ID)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&req.ProfileID, "profile", "", "profile that says how the agent is started")
	cmd.Flags().StringVar(&req.Workspace, "workspace", ".", "directory that the agent works in")
	cmd.Flags().StringVar(&req.TaskID, "task", "", "task that the session joins (default: a new one)")
	cmd.Flags().StringVar(&req.Title, "title", "", "title for people")
	cmd.Flags().BoolVar(&req.Passthrough, "passthrough", false, "the session ends with its backend")
	cobra.CheckErr(cmd.MarkFlagRequired("profile"))
	return cmd
}

func absolute(dir string) (string, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("the workspace %s is not a directory; give --workspace", dir)
	}
	return filepath.Abs(dir)
}

func newList(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all sessions",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			sessions, err := client.Sessions(cmd.Context())
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), sessions, func(out io.Writer) error { return printSessions(out, sessions) })
		},
	}
}

func printSessions(out io.Writer, sessions []userapi.Session) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSTATE\tTASK\tAGENT PID\tTURN\tASKS\tEVENTS\tUPDATED\tTITLE")
	for _, s := range sessions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", s.ID, s.State, s.TaskState, agentText(s.Agent),
			turnText(s.Turn), len(s.Pending), s.Position, s.UpdatedAt.Local().Format(time.DateTime), s.Title)
	}
	return w.Flush()
}

func agentText(a *userapi.Agent) string {
	if a == nil {
		return "-"
	}
	return fmt.Sprint(a.PID)
}

func turnText(t *userapi.Turn) string {
	switch {
	case t == nil:
		return "-"
	case t.Error != "":
		return fmt.Sprintf("%s: %s", t.State, t.Error)
	default:
		return withReason(string(t.State), t.StopReason)
	}
}

func newShow(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "show SESSION",
		Short: "Show a session, what it asks and how it came into its state",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			shown, err := readShown(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), shown, shown.print)
		},
	}
}

// shown is a session with its history.
type shown struct {
	userapi.Session
	Transitions []userapi.Transition `json:"transitions"`
}

func readShown(ctx context.Context, client *userapi.Client, id string) (shown, error) {
	session, err := client.Session(ctx, id)
	if err != nil {
		return shown{}, err
	}
	transitions, err := client.Transitions(ctx, id)
	return shown{Session: session, Transitions: transitions}, err
}

func (s shown) print(out io.Writer) error {
	if err := printSessions(out, []userapi.Session{s.Session}); err != nil {
		return err
	}
	if s.Cause != "" {
		fmt.Fprintf(out, "\ncause: %s\n", s.Cause)
	}
	for _, p := range s.Pending {
		fmt.Fprintf(out, "\nthe agent asks (request %s): %s\n", p.RequestID, p.Params)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nAT\tFROM\tTO\tCAUSE\tBOOT")
	for _, t := range s.Transitions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.At.Local().Format(time.DateTime), t.From, t.To, t.Cause, t.BootID)
	}
	return w.Flush()
}
