//go:build unix

package instance

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"go.uber.org/goleak"

	"github.com/kandev/recovery/agentctl/process"
)

// Arguments that make this test binary play an agent, or an agent's child.
const (
	agentArgument = "play-agent"
	childArgument = "play-child"
)

// Variables that direct the agent.
const (
	envDir       = "TEST_AGENT_DIR"       // where it leaves its call log and pids
	envBehaviour = "TEST_AGENT_BEHAVIOUR" // words, separated by spaces
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case agentArgument:
			playAgent()
			return
		case childArgument:
			signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
			must(os.WriteFile(filepath.Join(os.Getenv(envDir), "child-"+strconv.Itoa(os.Getpid())), nil, 0o600))
			select {}
		}
	}
	must(process.BecomeSubreaper())
	goleak.VerifyTestMain(m)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func playAgent() {
	a := &testAgent{cancelled: make(chan struct{}, 1)}
	switch {
	case a.behaves("exits"):
		fmt.Fprintln(os.Stderr, "cannot find /etc/agent.conf")
		os.Exit(3)
	case a.behaves("deaf"):
		signal.Ignore(syscall.SIGTERM)
	}
	heard, err := os.Create(filepath.Join(os.Getenv(envDir), "heard"))
	must(err)
	a.conn = sdk.NewAgentSideConnection(a, os.Stdout, io.TeeReader(os.Stdin, heard))
	<-a.conn.Done()
	if a.behaves("deaf") {
		select {}
	}
}

// testAgent obeys its behaviour and the words of each prompt. Every call is
// noted in its log, by which tests count them.
type testAgent struct {
	sdk.Agent
	conn      *sdk.AgentSideConnection
	cancelled chan struct{}
}

func (a *testAgent) behaves(word string) bool {
	return slices.Contains(strings.Fields(os.Getenv(envBehaviour)), word)
}

func (a *testAgent) note(call string) {
	f, err := os.OpenFile(filepath.Join(os.Getenv(envDir), "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	_, err = f.WriteString(call + "\n")
	must(err)
	must(f.Close())
}

func (a *testAgent) Initialize(ctx context.Context, _ sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	a.note("initialize")
	if a.behaves("mute") {
		<-ctx.Done()
	}
	r := sdk.InitializeResponse{ProtocolVersion: sdk.ProtocolVersionNumber}
	r.AgentCapabilities.LoadSession = a.behaves("loads")
	if a.behaves("resumes") {
		r.AgentCapabilities.SessionCapabilities.Resume = &sdk.SessionResumeCapabilities{}
	}
	return r, nil
}

func (a *testAgent) NewSession(context.Context, sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	a.note("new")
	return sdk.NewSessionResponse{SessionId: "provider-1"}, nil
}

func (a *testAgent) LoadSession(_ context.Context, r sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	a.note("load " + string(r.SessionId))
	if a.behaves("forgets") {
		return sdk.LoadSessionResponse{}, &sdk.RequestError{Code: -32002, Message: "no session in /home/u/.agent"}
	}
	return sdk.LoadSessionResponse{}, nil
}

func (a *testAgent) ResumeSession(_ context.Context, r sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	a.note("resume " + string(r.SessionId))
	return sdk.ResumeSessionResponse{}, nil
}

func (a *testAgent) Cancel(context.Context, sdk.CancelNotification) error {
	a.note("cancel")
	a.cancelled <- struct{}{}
	return nil
}

// Prompt reads its first block as a command: "say N", "environment", "hang",
// "ask", "babble N" (to standard error), "spawn" a child, say something "later",
// "close" its output and run on, "die CODE" leaving a child.
func (a *testAgent) Prompt(ctx context.Context, r sdk.PromptRequest) (sdk.PromptResponse, error) {
	word, argument, _ := strings.Cut(r.Prompt[0].Text.Text, " ")
	a.note("prompt " + word)
	n, _ := strconv.Atoi(argument)
	stop := sdk.StopReasonEndTurn
	switch word {
	case "say":
		for k := range n {
			a.say(ctx, r.SessionId, strconv.Itoa(k+1))
		}
	case "environment":
		a.say(ctx, r.SessionId, strings.Join(os.Environ(), "\n"))
	case "hang":
		<-a.cancelled
		stop = sdk.StopReasonCancelled
	case "ask":
		a.note("answer " + a.ask(ctx, r.SessionId))
	case "babble":
		fmt.Fprint(os.Stderr, strings.Repeat("e", n))
	case "spawn":
		a.leaveChild()
	case "later":
		go func() {
			waitFor(filepath.Join(os.Getenv(envDir), "go"))
			a.say(context.Background(), r.SessionId, "later")
		}()
	case "close":
		must(os.Stdout.Close())
		select {}
	case "die":
		a.say(ctx, r.SessionId, "last words")
		a.leaveChild()
		os.Exit(n)
	}
	return sdk.PromptResponse{StopReason: stop}, nil
}

func (a *testAgent) say(ctx context.Context, session sdk.SessionId, text string) {
	must(a.conn.SessionUpdate(ctx, sdk.SessionNotification{
		SessionId: session, Update: sdk.UpdateAgentMessageText(text),
	}))
}

func (a *testAgent) ask(ctx context.Context, session sdk.SessionId) string {
	// The client answers the request of a cancelled turn, as ACP demands.
	r, err := a.conn.RequestPermission(context.WithoutCancel(ctx), sdk.RequestPermissionRequest{
		SessionId: session,
		ToolCall:  sdk.ToolCallUpdate{ToolCallId: "call-1"},
		Options:   []sdk.PermissionOption{{Kind: sdk.PermissionOptionKindAllowOnce, Name: "Yes", OptionId: "yes"}},
	})
	must(err)
	if r.Outcome.Selected == nil {
		return "cancelled"
	}
	return string(r.Outcome.Selected.OptionId)
}

// leaveChild starts a child in a session of its own that holds our output.
func (a *testAgent) leaveChild() {
	child := exec.Command(os.Args[0], childArgument)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(child.Start())
	waitFor(filepath.Join(os.Getenv(envDir), "child-*"))
}

func waitFor(pattern string) {
	for {
		found, err := filepath.Glob(pattern)
		must(err)
		if len(found) > 0 {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
}
