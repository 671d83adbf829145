package fakeagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// turn is one prompt at work.
type turn struct {
	agent   *agent
	session *session
	cwd     string
	number  int
	size    int
}

// turnEnd ends a script early with a stop reason.
type turnEnd struct{ reason acp.StopReason }

func (e turnEnd) Error() string { return "turn ended: " + string(e.reason) }

// update records and sends one numbered update.
func (t *turn) update(ctx context.Context, text string, size int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e, err := t.session.nextUpdate(t.number, text, size)
	if err != nil {
		return err
	}
	// What is recorded is sent, also when a cancel comes in between.
	return t.agent.conn.SessionUpdate(context.WithoutCancel(ctx), acp.SessionNotification{
		SessionId: acp.SessionId(t.session.id),
		Update:    acp.UpdateAgentMessageText(updateText(e)),
	})
}

func (t *turn) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(t.cwd, name)
}

type stream struct {
	count int
	until string
	every time.Duration
	size  int
}

func (s stream) run(ctx context.Context, t *turn) error {
	size := max(s.size, t.size)
	for i := 0; s.until != "" || i < s.count; i++ {
		if s.until != "" {
			if there, err := exists(t.path(s.until)); there || err != nil {
				return err
			}
		}
		if err := t.update(ctx, "", size); err != nil {
			return err
		}
		if err := pause(ctx, s.every); err != nil {
			return err
		}
	}
	return nil
}

type size struct{ bytes int }

func (s size) run(_ context.Context, t *turn) error {
	t.size = s.bytes
	return nil
}

type say struct{ text string }

func (s say) run(ctx context.Context, t *turn) error { return t.update(ctx, s.text, t.size) }

type ask struct{ title string }

// Options that a permission request offers.
const (
	OptionAllow  = "allow"
	OptionReject = "reject"
)

func (a ask) run(ctx context.Context, t *turn) error {
	title := a.title
	if title == "" {
		title = "Change a file"
	}
	if err := t.session.record(Entry{Role: RoleAsk, Turn: t.number, Text: title}); err != nil {
		return err
	}
	call := acp.ToolCallId(fmt.Sprintf("call-%d", t.number))
	// A cancelled turn's request is answered by the client, as ACP demands.
	answer, err := t.agent.conn.RequestPermission(context.WithoutCancel(ctx), acp.RequestPermissionRequest{
		SessionId: acp.SessionId(t.session.id),
		ToolCall:  acp.ToolCallUpdate{ToolCallId: call, Title: &title},
		Options: []acp.PermissionOption{
			{OptionId: OptionAllow, Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionId: OptionReject, Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		},
	})
	if err != nil {
		return err
	}
	if answer.Outcome.Selected != nil {
		return t.update(ctx, "chose "+string(answer.Outcome.Selected.OptionId), t.size)
	}
	return t.update(ctx, "permission cancelled", t.size)
}

type wait struct{ name string }

// fileInterval is how often a script looks for a file that it waits for.
const fileInterval = 20 * time.Millisecond

func (w wait) run(ctx context.Context, t *turn) error {
	for {
		if there, err := exists(t.path(w.name)); there || err != nil {
			return err
		}
		if err := pause(ctx, fileInterval); err != nil {
			return err
		}
	}
}

type sleep struct{ d time.Duration }

func (s sleep) run(ctx context.Context, _ *turn) error { return pause(ctx, s.d) }

type noise struct{ text string }

func (n noise) run(_ context.Context, t *turn) error {
	_, err := t.agent.out.Write([]byte(n.text + "\n"))
	return err
}

type raw struct{ bytes []byte }

func (r raw) run(_ context.Context, t *turn) error {
	_, err := t.agent.out.Write(r.bytes)
	return err
}

type pieces struct{ bytes int }

func (p pieces) run(_ context.Context, t *turn) error {
	t.agent.out.splitInto(p.bytes)
	return nil
}

type crlf struct{}

func (crlf) run(_ context.Context, t *turn) error {
	t.agent.out.endInCRLF()
	return nil
}

type complain struct{ until string }

func (c complain) run(_ context.Context, t *turn) error {
	go t.agent.complainUntil(t.path(c.until))
	return nil
}

type spawn struct{ setsid bool }

func (s spawn) run(_ context.Context, t *turn) error { return t.agent.spawnGrandchild(s.setsid) }

type ignoreTerm struct{}

func (ignoreTerm) run(context.Context, *turn) error {
	signal.Ignore(syscall.SIGTERM)
	return nil
}

type end struct{ reason string }

func (e end) run(context.Context, *turn) error {
	if e.reason == "" {
		return turnEnd{acp.StopReasonEndTurn}
	}
	return turnEnd{acp.StopReason(e.reason)}
}

type fail struct{ message string }

// failureCode is the JSON-RPC code of a prompt that its script fails.
const failureCode = -32000

func (f fail) run(context.Context, *turn) error {
	return &acp.RequestError{Code: failureCode, Message: f.message}
}

type exit struct{ code int }

func (e exit) run(context.Context, *turn) error {
	os.Exit(e.code)
	return nil
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
