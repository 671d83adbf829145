package fakeagent

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
)

func TestStreamsNumberedUpdatesOverTurns(t *testing.T) {
	d := spawnAgent(t, newHome(t))
	id := d.open()
	resp, err := d.prompt(id, "stream 20 every 1ms\nsay \"half way\"; end")
	require.NoError(t, err)
	require.Equal(t, acp.StopReasonEndTurn, resp.StopReason)
	_, err = d.prompt(id, "size 1KB; stream 4")
	require.NoError(t, err)

	require.Equal(t, upTo(25), d.numbers())
	texts := d.texts()
	require.Equal(t, "1 21 half way", texts[20])
	require.True(t, strings.HasPrefix(texts[24], "2 25 ."))
	require.Len(t, texts[24], 1<<10)
	require.Equal(t, Produced{Updates: 25, Ends: 2}, d.history().Produced())
	require.Equal(t, d.cwd, d.history().Cwd())
}

// The call log is what proves that there was no second start, no resume and
// one prompt only (S-001.4, B-17).
func TestCallLogRecordsEveryCall(t *testing.T) {
	d := spawnAgent(t, newHome(t))
	id := d.open()
	_, err := d.prompt(id, "hello there")
	require.NoError(t, err)
	require.Equal(t, []string{"1 1 heard you"}, d.texts())

	require.Equal(t, []string{MethodStart, acp.AgentMethodInitialize, acp.AgentMethodSessionNew, acp.AgentMethodSessionPrompt}, d.methods())
	calls, err := ReadCalls(d.log)
	require.NoError(t, err)
	for _, c := range calls {
		require.Equal(t, d.cmd.Process.Pid, c.PID)
	}
	require.Equal(t, d.cwd, calls[2].Cwd)
	require.Equal(t, string(id), calls[3].SessionID)
	require.Len(t, calls[3].Digest, 64)
}

func TestPermissionSaysWhichOptionItGot(t *testing.T) {
	for name, outcome := range map[string]acp.RequestPermissionOutcome{
		"chose reject":         acp.NewRequestPermissionOutcomeSelected(OptionReject),
		"permission cancelled": acp.NewRequestPermissionOutcomeCancelled(),
	} {
		t.Run(name, func(t *testing.T) {
			d := spawnAgent(t, newHome(t))
			d.answer = func(context.Context) acp.RequestPermissionOutcome { return outcome }
			_, err := d.prompt(d.open(), "ask")
			require.NoError(t, err)
			require.Equal(t, []string{"1 1 " + name}, d.texts())
			require.Equal(t, Produced{Updates: 1, Asks: 1, Ends: 1}, d.history().Produced())
		})
	}
}

func TestCancelEndsTheTurn(t *testing.T) {
	d := spawnAgent(t, newHome(t))
	id := d.open()
	ended := make(chan acp.PromptResponse, 1)
	go func() {
		resp, err := d.prompt(id, "say working; wait file never")
		if err == nil {
			ended <- resp
		}
	}()
	require.Eventually(t, func() bool { return len(d.texts()) == 1 }, patience, time.Millisecond)
	require.NoError(t, d.acp.Cancel(d.ctx(), acp.CancelNotification{SessionId: id}))
	select {
	case resp := <-ended:
		require.Equal(t, acp.StopReasonCancelled, resp.StopReason)
	case <-time.After(patience):
		require.Fail(t, "the turn did not end")
	}
}

func TestWaitAndStreamUntilFile(t *testing.T) {
	d := spawnAgent(t, newHome(t))
	id := d.open()
	go func() {
		for len(d.texts()) < 5 {
			runtime.Gosched()
		}
		if err := os.WriteFile(filepath.Join(d.cwd, "go"), nil, 0o600); err != nil {
			panic(err)
		}
	}()
	_, err := d.prompt(id, "stream until file go every 1ms; wait file go; say done")
	require.NoError(t, err)
	texts := d.texts()
	require.Greater(t, len(texts), 5)
	require.True(t, strings.HasSuffix(texts[len(texts)-1], " done"))
	require.Equal(t, upTo(len(texts)), d.numbers())
}

func TestFailsAndRefuses(t *testing.T) {
	d := spawnAgent(t, newHome(t))
	id := d.open()
	_, err := d.prompt(id, `say before; fail "out of tokens"`)
	var refused *acp.RequestError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, failureCode, refused.Code)
	require.Contains(t, refused.Error(), "out of tokens")

	_, err = d.prompt(id, "say before; frobnicate")
	require.ErrorAs(t, err, &refused)
	resp, err := d.prompt(id, "end max tokens")
	require.NoError(t, err)
	require.Equal(t, acp.StopReasonMaxTokens, resp.StopReason)
	require.Equal(t, Produced{Updates: 1, Ends: 3}, d.history().Produced())
}

func TestExitEndsTheProcessInTheTurn(t *testing.T) {
	d := spawnAgent(t, newHome(t))
	_, err := d.prompt(d.open(), "say bye; exit 3")
	require.Error(t, err)
	require.Equal(t, 3, d.awaitExit())
	require.Equal(t, Produced{Updates: 1}, d.history().Produced())
}

func TestNoiseLeavesTheFramesWhole(t *testing.T) {
	d := spawnAgent(t, newHome(t))
	_, err := d.prompt(d.open(), `say a; noise "warning: no frame"; say b`)
	require.NoError(t, err)
	require.Equal(t, []string{"1 1 a", "1 2 b"}, d.texts())
}

// A load replays what was said and goes on with the next number (B-18).
func TestLoadReplaysAndGoesOnCounting(t *testing.T) {
	h := newHome(t)
	first := spawnAgent(t, h)
	id := first.open()
	_, err := first.prompt(id, "stream 3")
	require.NoError(t, err)
	first.kill()

	second := spawnAgent(t, h)
	caps, err := second.initialize()
	require.NoError(t, err)
	require.True(t, caps.AgentCapabilities.LoadSession)
	require.Nil(t, caps.AgentCapabilities.SessionCapabilities.Resume)
	require.NoError(t, second.load(id))
	require.Equal(t, first.texts(), second.texts())
	_, err = second.prompt(id, "stream 2")
	require.NoError(t, err)
	require.Equal(t, upTo(5), second.numbers())
	require.Equal(t, 5, second.history().Produced().Updates)
	require.Error(t, second.load("fake-unknown"))
	require.Error(t, second.load("../state/"+id))
}

func TestResumeGoesOnWithoutReplay(t *testing.T) {
	h := newHome(t)
	first := spawnAgent(t, h)
	id := first.open()
	_, err := first.prompt(id, "stream 3")
	require.NoError(t, err)
	first.kill()

	second := spawnAgent(t, h, "--capabilities", "resume")
	caps, err := second.initialize()
	require.NoError(t, err)
	require.False(t, caps.AgentCapabilities.LoadSession)
	require.NotNil(t, caps.AgentCapabilities.SessionCapabilities.Resume)
	_, err = second.acp.ResumeSession(second.ctx(), acp.ResumeSessionRequest{SessionId: id, Cwd: h.cwd, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	require.Empty(t, second.texts())
	_, err = second.prompt(id, "say on")
	require.NoError(t, err)
	require.Equal(t, []string{"2 4 on"}, second.texts())
}

func TestExitPoints(t *testing.T) {
	h := newHome(t)
	stored := spawnAgent(t, h)
	id := stored.open()
	_, err := stored.prompt(id, "stream 4")
	require.NoError(t, err)
	stored.kill()

	for point, methods := range map[string][]string{
		ExitBeforeInitialize: {MethodStart},
		ExitAtInitialize:     {MethodStart, acp.AgentMethodInitialize},
		ExitDuringNew:        {MethodStart, acp.AgentMethodInitialize, acp.AgentMethodSessionNew},
		ExitDuringLoad:       {MethodStart, acp.AgentMethodInitialize, acp.AgentMethodSessionLoad},
	} {
		t.Run(point, func(t *testing.T) {
			own := home{state: h.state, log: filepath.Join(t.TempDir(), "calls"), cwd: h.cwd}
			d := spawnAgent(t, own, "--exit-at", point, "--exit-code", "7")
			if point != ExitBeforeInitialize {
				_, err := d.initialize()
				require.Equal(t, point == ExitAtInitialize, err != nil)
			}
			switch point {
			case ExitDuringNew:
				_, err := d.acp.NewSession(d.ctx(), acp.NewSessionRequest{Cwd: d.cwd, McpServers: []acp.McpServer{}})
				require.Error(t, err)
			case ExitDuringLoad:
				require.Error(t, d.load(id))
			}
			require.Equal(t, 7, d.awaitExit())
			require.Equal(t, methods, d.methods())
		})
	}
}

func TestEndOfInputEndsTheAgent(t *testing.T) {
	d := spawnAgent(t, newHome(t))
	d.open()
	require.NoError(t, d.stdin.Close())
	require.Equal(t, 0, d.awaitExit())
}

func TestOutlivesEndOfInputAndTerminationWhenTold(t *testing.T) {
	d := spawnAgent(t, newHome(t), "--ignore-eof", "--ignore-sigterm")
	d.open()
	require.NoError(t, d.stdin.Close())
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-d.exited:
		require.Fail(t, "the agent ended")
	case <-time.After(200 * time.Millisecond):
	}
}

// A grandchild holds the agent's output open after the agent's death (B-6).
func TestGrandchildOutlivesTheAgent(t *testing.T) {
	d := spawnAgent(t, newHome(t))
	_, err := d.prompt(d.open(), "spawn grandchild setsid")
	require.NoError(t, err)
	calls, err := ReadCalls(d.log)
	require.NoError(t, err)
	last := calls[len(calls)-1]
	require.Equal(t, MethodGrandchild, last.Method)
	grandchild, err := os.FindProcess(last.PID)
	require.NoError(t, err)
	d.kill()
	require.NoError(t, grandchild.Signal(syscall.Signal(0)), "the grandchild must live on")
	require.NoError(t, grandchild.Kill())
	select {
	case <-d.acp.Done():
	case <-time.After(patience):
		require.Fail(t, "the output stayed open")
	}
}
