package fakeagent

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// Environment variables that are the defaults of the flags of the same name.
const (
	EnvState      = "FAKEAGENT_STATE"
	EnvLog        = "FAKEAGENT_LOG"
	EnvExitAt     = "FAKEAGENT_EXIT_AT"
	EnvIgnoreTerm = "FAKEAGENT_IGNORE_SIGTERM"
	EnvIgnoreEOF  = "FAKEAGENT_IGNORE_EOF"
)

// Main is the program: it runs the agent, or the grandchild of one, that the
// arguments ask for and returns the exit status.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) == 1 && args[0] == grandchildArgument {
		beGrandchild()
		return 0
	}
	opts, err := parseOptions(args, errOut)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = run(opts, in, out)
	}
	if err != nil {
		fmt.Fprintln(errOut, "fakeagent:", err)
		return 1
	}
	return 0
}

func parseOptions(args []string, errOut io.Writer) (options, error) {
	var opts options
	var capabilities string
	flags := flag.NewFlagSet("fakeagent", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&opts.state, "state", os.Getenv(EnvState), "directory of the histories ("+EnvState+")")
	flags.StringVar(&opts.log, "log", os.Getenv(EnvLog), "call log, appended to ("+EnvLog+")")
	flags.StringVar(&opts.exitAt, "exit-at", os.Getenv(EnvExitAt),
		strings.Join(exitPoints, ", ")+" ("+EnvExitAt+")")
	flags.IntVar(&opts.exitCode, "exit-code", 1, "exit status at --exit-at")
	flags.BoolVar(&opts.ignoreTerm, "ignore-sigterm", os.Getenv(EnvIgnoreTerm) != "", "do nothing on SIGTERM ("+EnvIgnoreTerm+")")
	flags.BoolVar(&opts.ignoreEOF, "ignore-eof", os.Getenv(EnvIgnoreEOF) != "", "go on when standard input ends ("+EnvIgnoreEOF+")")
	flags.StringVar(&capabilities, "capabilities", "load", "ways to reopen a session: load, resume, load,resume or none")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	for name := range strings.SplitSeq(capabilities, ",") {
		switch name {
		case "load":
			opts.load = true
		case "resume":
			opts.resume = true
		case "none":
		default:
			return opts, fmt.Errorf("unknown capability %q; use load, resume or none", name)
		}
	}
	if opts.state == "" {
		return opts, errors.New("no state directory; give --state or set " + EnvState)
	}
	return opts, nil
}
