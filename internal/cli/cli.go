// Package cli is the operator's command line. Every error says what failed, why,
// and what to do about it.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/stack"
	"github.com/kandev/recovery/userapi"
)

// Run carries out one command and returns the exit status.
func Run(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(errOut, "recoveryctl:", explain(err))
		return 1
	}
	return 0
}

// flags are those of every command.
type flags struct {
	home string
	json bool
}

func newRoot() *cobra.Command {
	var f flags
	root := &cobra.Command{
		Use:           "recoveryctl",
		Short:         "Run and operate agents that survive their backend",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			home, err := resolveHome(f.home)
			f.home = home
			return err
		},
	}
	root.PersistentFlags().StringVar(&f.home, "home", "", "home directory of the installation (default $KANDEV_HOME, else ~/.kandev)")
	root.PersistentFlags().BoolVar(&f.json, "json", false, "print JSON")
	root.AddCommand(newUp(&f), newDown(&f), newDemo(), newBench(), newStatus(&f), newSession(&f), newProfile(&f), newFeature(&f))
	return root
}

func resolveHome(given string) (string, error) {
	if given == "" {
		given = os.Getenv(stack.EnvHome)
	}
	if given == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the home directory: %w; give --home", err)
		}
		given = filepath.Join(user, ".kandev")
	}
	return filepath.Abs(given)
}

// explain adds what to do where the error does not say it itself.
func explain(err error) string {
	var refused *userapi.Error
	var network *net.OpError
	switch {
	case errors.As(err, &refused) && refused.Retryable:
		return err.Error() + " (asking again later can succeed)"
	case errors.As(err, &network):
		return fmt.Sprintf("the backend does not answer: %v; see whether it runs, or start it with `recoveryctl up`", network)
	case errors.Is(err, context.Canceled):
		return strings.Replace(err.Error(), context.Canceled.Error(), "interrupted", 1)
	default:
		return err.Error()
	}
}

// connect returns a client of the running backend.
func (f *flags) connect() (*userapi.Client, error) { return stack.Connect(f.home) }

// print writes v as JSON if that is wanted, otherwise as the text says.
func (f *flags) print(out io.Writer, v any, text func(io.Writer) error) error {
	if !f.json {
		return text(out)
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// terminalLogger shows warnings and errors only: progress is told in words.
func terminalLogger() (*zap.Logger, error) {
	cfg := zap.NewDevelopmentConfig()
	cfg.Level = zap.NewAtomicLevelAt(zap.WarnLevel)
	cfg.DisableStacktrace, cfg.DisableCaller = true, true
	return cfg.Build()
}
