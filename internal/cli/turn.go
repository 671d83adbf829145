package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/kandev/recovery/userapi"
)

func newPrompt(f *flags) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "prompt SESSION TEXT …",
		Short: "Send a prompt; with the same --key again it is sent only once",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" {
				key = uuid.NewString()
			}
			client, err := f.connect()
			if err != nil {
				return err
			}
			turn, err := client.Prompt(cmd.Context(), args[0], key, strings.Join(args[1:], " "))
			if err != nil {
				return fmt.Errorf("%w (to repeat this prompt safely, give --key %s)", err, key)
			}
			return f.print(cmd.OutOrStdout(), turn, func(out io.Writer) error {
				_, err := fmt.Fprintf(out, "%s %s\n", turn.Key, turn.State)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "name of this prompt, so that it can be repeated (default: random)")
	return cmd
}

func newAnswer(f *flags) *cobra.Command {
	var request string
	var cancelled bool
	cmd := &cobra.Command{
		Use:   "answer SESSION [OPTION]",
		Short: "Answer what the session's agent asks",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer := userapi.PermissionAnswer{Cancelled: cancelled}
			if len(args) == 2 {
				answer.OptionID = args[1]
			}
			if cancelled == (answer.OptionID != "") {
				return errors.New("give either an option or --cancelled; `session show` lists the options")
			}
			client, err := f.connect()
			if err != nil {
				return err
			}
			if request == "" {
				if request, err = onlyRequest(cmd.Context(), client, args[0]); err != nil {
					return err
				}
			}
			return client.AnswerPermission(cmd.Context(), args[0], request, answer)
		},
	}
	cmd.Flags().StringVar(&request, "request", "", "which request (default: the only one)")
	cmd.Flags().BoolVar(&cancelled, "cancelled", false, "answer that the request was cancelled")
	return cmd
}

func onlyRequest(ctx context.Context, client *userapi.Client, id string) (string, error) {
	session, err := client.Session(ctx, id)
	if err != nil {
		return "", err
	}
	switch len(session.Pending) {
	case 0:
		return "", fmt.Errorf("the agent of session %s asks nothing", id)
	case 1:
		return session.Pending[0].RequestID, nil
	default:
		return "", fmt.Errorf("the agent of session %s asks %d things; give --request, `session show` lists them", id, len(session.Pending))
	}
}

// newAct is a command that does one thing to one session.
func newAct(f *flags, name, short string, act func(*userapi.Client, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " SESSION",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			return act(client, cmd.Context(), args[0])
		},
	}
}
