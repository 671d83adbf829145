package temporaltest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Bounds of the wait for a new namespace.
const (
	namespacePatience = 60 * time.Second // reached only by a failure
	namespaceTick     = 20 * time.Millisecond
)

// Quiet is a logger for the SDK's clients and workers that drops everything.
var Quiet sdklog.Logger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

// Namespace creates a namespace in which nothing has been registered, and
// connects to it. Its name is unique; the connection ends with the test.
func Namespace(t testing.TB) (client.Client, string) {
	t.Helper()
	name := "test-" + uuid.NewString()
	options := client.Options{HostPort: Address(t), Namespace: name, Logger: Quiet}
	namespaces, err := client.NewNamespaceClient(options)
	require.NoError(t, err)
	defer namespaces.Close()
	require.NoError(t, namespaces.Register(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}))
	c, err := client.DialContext(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	// The namespace reaches every part of the server a little later.
	count := &workflowservice.CountWorkflowExecutionsRequest{Namespace: name}
	require.Eventually(t, func() bool {
		_, err := c.WorkflowService().CountWorkflowExecutions(t.Context(), count)
		return err == nil
	}, namespacePatience, namespaceTick)
	return c, name
}
