package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/kandev/recovery/internal/fakeagent"
)

// plainAgent is a scripted agent of the baseline, and the little of the protocol
// that has to be spoken with it.
type plainAgent struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
	name    string // of its session and its instance
	session string // its own
	calls   int
	seq     int64
}

// rpc is what a plain reader needs of a line.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

func (a *plainAgent) start(ctx context.Context, program, state string) (err error) {
	a.cmd = exec.CommandContext(ctx, program, "--state", state)
	a.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), envThread + "=" + oneThread}
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	a.stdout = bufio.NewReaderSize(out, 64<<10)
	return a.cmd.Start()
}

// open speaks what has to be said before a prompt.
func (a *plainAgent) open(workspace string) error {
	if err := a.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}); err != nil {
		return err
	}
	if _, err := a.answer(); err != nil {
		return err
	}
	if err := a.call("session/new", map[string]any{"cwd": workspace, "mcpServers": []any{}}); err != nil {
		return err
	}
	answer, err := a.answer()
	if err != nil {
		return err
	}
	var opened struct {
		SessionID string `json:"sessionId"`
	}
	err = json.Unmarshal(answer.Result, &opened)
	a.session = opened.SessionID
	return err
}

func (a *plainAgent) prompt(text string) error {
	return a.call("session/prompt", map[string]any{
		"sessionId": a.session, "prompt": []any{map[string]string{"type": "text", "text": text}},
	})
}

func (a *plainAgent) call(method string, params any) error {
	a.calls++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": a.calls, "method": method, "params": params})
	if err != nil {
		return err
	}
	_, err = a.stdin.Write(append(line, '\n'))
	return err
}

func (a *plainAgent) next() (m rpc, err error) {
	line, err := a.stdout.ReadBytes('\n')
	if err != nil {
		return m, fmt.Errorf("read an agent: %w", err)
	}
	return m, json.Unmarshal(line, &m)
}

func (a *plainAgent) answer() (rpc, error) {
	m, err := a.next()
	if err == nil && string(m.ID) != strconv.Itoa(a.calls) {
		err = errors.New("the agent said something else than an answer")
	}
	return m, err
}

// writtenAt reads the agent's stamp in an update's payload.
func writtenAt(payload string) (time.Time, error) {
	var params struct {
		Update struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"update"`
	}
	if err := json.Unmarshal([]byte(payload), &params); err != nil {
		return time.Time{}, fmt.Errorf("read an update: %w", err)
	}
	update, ok := fakeagent.ParseUpdate(params.Update.Content.Text)
	stamp, _, _ := strings.Cut(update.Text, " ")
	written, err := strconv.ParseInt(stamp, 10, 64)
	if !ok || err != nil {
		return time.Time{}, errors.Join(errors.New("an update carries no time"), err)
	}
	return time.Unix(0, written), nil
}
