package launch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/credential"
)

// maxReadyBytes bounds the ready line.
const maxReadyBytes = 64 << 10

var (
	// ErrNotReady: the child ended, or did not report in time, before it
	// listened. It is not running any more.
	ErrNotReady = errors.New("the control server did not become ready")
	// ErrRecorded: a detached server that is recorded is no longer this
	// process's to end.
	ErrRecorded = errors.New("the control server is recorded and detached")
)

// Spec says what to start.
type Spec struct {
	Executable string
	// Config is given to the child with a nonce of its own; Config.Nonce is
	// ignored.
	Config wire.StartConfig
	// HTTPTimeout bounds the handshake.
	HTTPTimeout time.Duration
	Logger      *zap.Logger
}

// Launched is a control server that this process started and that has issued
// its first credential. Exactly one of Recorded and Abort is called next. The
// child is reaped when it ends, whenever that is.
type Launched struct {
	Endpoint       string
	Fingerprint    string
	ServerIdentity string
	PID            int
	Issued         wire.Issued

	detached bool
	child    *child

	mu       sync.Mutex
	recorded bool
}

// Start spawns a control server, waits until it listens and exchanges the nonce
// for the first credential. Every failure ends the child (B-26). A refusal by
// the child itself is a *wire.Error.
func Start(ctx context.Context, spec Spec) (*Launched, error) {
	config := spec.Config
	config.Nonce = credential.NewToken()
	c, err := spawn(spec.Executable, config, spec.Logger)
	if err != nil {
		return nil, err
	}
	launched, err := introduce(ctx, c, config, spec.HTTPTimeout)
	if err != nil {
		c.kill()
		return nil, err
	}
	return launched, nil
}

// introduce gives the child its configuration and takes its first credential.
func introduce(
	ctx context.Context, c *child, config wire.StartConfig, timeout time.Duration,
) (*Launched, error) {
	line, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode start configuration: %w", err)
	}
	if _, err := c.stdin.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("%w: write start configuration: %w", ErrNotReady, err)
	}
	ready, err := awaitReady(ctx, c)
	if err != nil {
		return nil, err
	}
	cl := client.New(client.Config{
		Endpoint: ready.Endpoint, Fingerprint: ready.Fingerprint, HTTPTimeout: timeout,
	})
	defer cl.Close()
	issued, err := cl.Handshake(ctx, config.Nonce)
	if err != nil {
		return nil, fmt.Errorf("handshake with the new control server: %w", err)
	}
	return &Launched{
		Endpoint:       ready.Endpoint,
		Fingerprint:    ready.Fingerprint,
		ServerIdentity: ready.ServerIdentity,
		PID:            c.pid,
		Issued:         issued,
		detached:       config.Detached,
		child:          c,
	}, nil
}

// awaitReady reads the ready line, which also comes if the child cannot start.
func awaitReady(ctx context.Context, c *child) (wire.Ready, error) {
	defer c.ready.Close()
	release := context.AfterFunc(ctx, func() { c.ready.Close() })
	defer release()

	line, err := bufio.NewReader(io.LimitReader(c.ready, maxReadyBytes)).ReadBytes('\n')
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return wire.Ready{}, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	var ready wire.Ready
	switch err := json.Unmarshal(line, &ready); {
	case err != nil:
		return wire.Ready{}, fmt.Errorf("%w: unreadable ready line", ErrNotReady)
	case ready.Error != nil:
		return wire.Ready{}, fmt.Errorf("%w: %w", ErrNotReady, ready.Error)
	case ready.Endpoint == "" || ready.Fingerprint == "" || ready.ServerIdentity == "":
		return wire.Ready{}, fmt.Errorf("%w: incomplete ready line", ErrNotReady)
	}
	return ready, nil
}

// Recorded tells the server that it is durably recorded. A detached one is let
// go of: nothing of this process is tied to it afterwards. A bound one stays
// tied until Abort or the end of this process.
func (l *Launched) Recorded() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recorded {
		return nil
	}
	if _, err := io.WriteString(l.child.stdin, wire.RecordedLine+"\n"); err != nil {
		return fmt.Errorf("tell the control server that it is recorded: %w", err)
	}
	l.recorded = true
	if !l.detached {
		return nil
	}
	if err := l.child.stdin.Close(); err != nil {
		return fmt.Errorf("let go of the control server: %w", err)
	}
	return nil
}

// Abort ends the server and waits for it: one that is not recorded (B-26), or
// one that is bound, with all its agents (S-005.1). It is killed when ctx ends
// first. Of a detached server that is recorded it is ErrRecorded.
func (l *Launched) Abort(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recorded && l.detached {
		return ErrRecorded
	}
	if err := l.child.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		l.child.kill()
		return fmt.Errorf("cut the tie to the control server: %w", err)
	}
	select {
	case <-l.child.exited:
		return nil
	case <-ctx.Done():
		l.child.kill()
		return fmt.Errorf("control server killed: %w", ctx.Err())
	}
}

// Exited is closed once the server has ended and was reaped.
func (l *Launched) Exited() <-chan struct{} { return l.child.exited }

// child is the spawned process and this side of its pipes.
type child struct {
	cmd    *exec.Cmd
	pid    int
	stdin  *os.File
	ready  *os.File
	exited chan struct{}
	logger *zap.Logger
}

// kill ends the process and waits until it is reaped.
func (c *child) kill() {
	c.stdin.Close()
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.logger.Error("control server not killed", zap.Int("pid", c.pid), zap.Error(err))
	}
	<-c.exited
}
