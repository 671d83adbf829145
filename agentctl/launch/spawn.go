package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"

	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/wire"
)

// spawn starts the executable with nothing of this process but two pipes: its
// standard input, and the ready pipe.
func spawn(executable string, config wire.StartConfig, logger *zap.Logger) (*child, error) {
	if err := keepDescriptors(); err != nil {
		logger.Warn("a control server may inherit descriptors", zap.Error(err))
	}
	stdinRead, stdinWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open standard input: %w", err)
	}
	defer stdinRead.Close()
	readyRead, readyWrite, err := os.Pipe()
	if err != nil {
		stdinWrite.Close()
		return nil, fmt.Errorf("open ready pipe: %w", err)
	}
	defer readyWrite.Close()

	cmd := exec.Command(executable)
	cmd.Stdin = stdinRead
	giveReadyPipe(cmd, readyWrite)
	cmd.Env = environment(os.Environ())
	cmd.Dir = config.Home
	cmd.SysProcAttr = attributes(config.Detached)

	c := &child{cmd: cmd, stdin: stdinWrite, ready: readyRead, exited: make(chan struct{}), logger: logger}
	if err := c.start(config.Detached); err != nil {
		stdinWrite.Close()
		readyRead.Close()
		return nil, fmt.Errorf("start control server: %w", withoutPath(err))
	}
	return c, nil
}

// start runs the child in a goroutine that reaps it. The goroutine lives as
// long as the child and holds nothing else.
func (c *child) start(detached bool) error {
	started := make(chan error, 1)
	go func() {
		defer close(c.exited)
		if !detached {
			// The parent-death signal follows the thread that spawned the child, so
			// that thread has to live as long as the child (golang/go#27505).
			pinThread()
		}
		err := c.cmd.Start()
		if err == nil {
			c.pid = c.cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		if err := c.cmd.Wait(); err != nil {
			c.logger.Info("control server ended", zap.Int("pid", c.pid), zap.Error(err))
			return
		}
		c.logger.Info("control server ended", zap.Int("pid", c.pid))
	}()
	return <-started
}

// withoutPath keeps the reason of a failed start and drops where it happened
// (W-4).
func withoutPath(err error) error {
	var located *fs.PathError
	if errors.As(err, &located) {
		return located.Err
	}
	return err
}
