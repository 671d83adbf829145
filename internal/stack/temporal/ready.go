package temporal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// errEarlyEnd: the process ended before its frontend answered.
var errEarlyEnd = errors.New("the Temporal server ended while it started")

// defaultNamespace is the one that the development server creates.
const defaultNamespace = "default"

const pollInterval = 50 * time.Millisecond

// awaitReady polls the frontend until the default namespace is there.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	quiet := log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	frontend, err := client.NewLazyClient(client.Options{HostPort: s.Address, Logger: quiet})
	if err != nil {
		return fmt.Errorf("create Temporal client: %w", err)
	}
	defer frontend.Close()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		asked, stop := context.WithTimeout(ctx, time.Second)
		_, err = frontend.WorkflowService().DescribeNamespace(asked,
			&workflowservice.DescribeNamespaceRequest{Namespace: defaultNamespace})
		stop()
		if err == nil {
			return nil
		}
		select {
		case <-s.process.Exited():
			return errEarlyEnd
		case <-ctx.Done():
			return fmt.Errorf("the Temporal server did not answer at %s: %w", s.Address, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// choosePorts returns two different free ports of the loopback address.
func choosePorts(port, uiPort int) (int, int, error) {
	first, err := listen(port)
	if err != nil {
		return 0, 0, err
	}
	defer first.Close()
	second, err := listen(uiPort)
	if err != nil {
		return 0, 0, err
	}
	defer second.Close()
	return first.Addr().(*net.TCPAddr).Port, second.Addr().(*net.TCPAddr).Port, nil
}

// listen binds the preferred port, or any when that cannot be had.
func listen(preferred int) (net.Listener, error) {
	if preferred != 0 {
		if l, err := net.Listen("tcp4", net.JoinHostPort(loopback, strconv.Itoa(preferred))); err == nil {
			return l, nil
		}
	}
	l, err := net.Listen("tcp4", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	return l, nil
}
