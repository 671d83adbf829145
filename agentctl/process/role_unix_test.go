//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// roleArgument makes this test binary play a process of a tree.
const roleArgument = "play-role"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == roleArgument {
		play(os.Args[2], os.Args[3:])
		return
	}
	if err := BecomeSubreaper(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// role is the command of a process that plays it.
func role(name string, args ...string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{exe, roleArgument, name}, args...)
}

func play(name string, args []string) {
	switch name {
	case "environment":
		env := os.Environ()
		slices.Sort(env)
		fmt.Print(strings.Join(env, "\n"))
	case "deaf": // announces itself in a directory and ignores SIGTERM
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		announce(args[0])
		select {}
	case "polite": // announces itself and ends on SIGTERM
		announce(args[0])
		select {}
	case "start": // starts another role and ends
		start(false, args)
	case "start-in-session":
		start(true, args)
	case "start-bare": // with an empty environment
		run(exec.Cmd{Path: args[0], Args: args, Env: []string{}})
	case "family": // a child, one in a session of its own, and one that lost its parent
		start(false, role("deaf", args...))
		start(true, role("deaf", args...))
		start(true, role("start-in-session", role("deaf", args...)...))
		announce(args[0])
		select {}
	case "shout": // fills the pipe, leaves a child that holds it, and ends
		start(true, role("deaf", args[1:]...))
		size, err := strconv.Atoi(args[0])
		check(err)
		fmt.Print(strings.Repeat("x", size))
	case "exit":
		code, err := strconv.Atoi(args[0])
		check(err)
		os.Exit(code)
	}
}

func start(ownSession bool, argv []string) {
	run(exec.Cmd{Path: argv[0], Args: argv, SysProcAttr: &syscall.SysProcAttr{Setsid: ownSession}})
}

func run(cmd exec.Cmd) {
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	check(cmd.Start())
}

// announce leaves a file named by the pid, which appears whole.
func announce(dir string) {
	name := filepath.Join(dir, strconv.Itoa(os.Getpid()))
	check(os.WriteFile(name, nil, 0o600))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}
