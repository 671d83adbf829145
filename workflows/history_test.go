package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/kandev/recovery/activities/calls"
)

// historiesDir holds one file per branch.
const historiesDir = "histories"

func historyFile(name string) string { return filepath.Join(historiesDir, name+".json") }

// history is what a server recorded of one run.
type history struct{ *historypb.History }

// fetch reads the history of a run, which has ended.
func fetch(ctx context.Context, t *testing.T, c client.Client, id, run string) history {
	t.Helper()
	events := c.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	h := &historypb.History{}
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		h.Events = append(h.Events, event)
	}
	return history{h}
}

// load reads a recorded history.
func load(t *testing.T, name string) history {
	t.Helper()
	file, err := os.Open(historyFile(name))
	require.NoError(t, err)
	h, err := client.HistoryFromJSON(file, client.HistoryJSONOptions{})
	require.NoError(t, err)
	require.NoError(t, file.Close())
	return history{h}
}

// file is the history as it is kept: one event a line, and without a trace of
// the machine that recorded it.
func (h history) file(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	out.WriteString(`{"events":[`)
	for i, event := range h.Events {
		raw, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(event)
		require.NoError(t, err)
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		var decoded map[string]any
		require.NoError(t, decoder.Decode(&decoded))
		anonymise(decoded)
		line, err := json.Marshal(decoded) // with sorted keys
		require.NoError(t, err)
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		out.Write(line)
	}
	out.WriteString("\n]}\n")
	return out.Bytes()
}

// anonymise takes away what names a process or a machine: identities of clients
// and workers, their sticky queues, and the checksums of their programs.
func anonymise(value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			anonymise(element)
		}
	case map[string]any:
		if v["kind"] == enumspb.TASK_QUEUE_KIND_STICKY.String() || v["kind"] == "TASK_QUEUE_KIND_STICKY" {
			v["name"] = "sticky"
		}
		for key, element := range v {
			switch key {
			case "identity":
				v[key] = "recorder"
			case "binaryChecksum", "workerVersion":
				delete(v, key)
			default:
				anonymise(element)
			}
		}
	}
}

// closed is how the run ended.
func (h history) closed() enumspb.EventType { return h.Events[len(h.Events)-1].GetEventType() }

// result decodes the result of a completed run.
func result[T any](t *testing.T, h history) T {
	t.Helper()
	completed := h.Events[len(h.Events)-1].GetWorkflowExecutionCompletedEventAttributes()
	require.NotNil(t, completed, "the run ended with %s", h.closed())
	var out T
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(completed.GetResult(), &out))
	return out
}

// inputs decodes the inputs of every call of an activity.
func inputs[T any](t *testing.T, h history, activity string) []T {
	t.Helper()
	var all []T
	for _, event := range h.Events {
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled.GetActivityType().GetName() == activity {
			var in T
			require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(scheduled.GetInput(), &in))
			all = append(all, in)
		}
	}
	return all
}

// attempts is how often an activity was tried, over all its calls.
func (h history) attempts(activity string) int {
	scheduled := map[int64]bool{}
	attempts := 0
	for _, event := range h.Events {
		if event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == activity {
			scheduled[event.GetEventId()] = true
		}
		if started := event.GetActivityTaskStartedEventAttributes(); scheduled[started.GetScheduledEventId()] {
			attempts += int(started.GetAttempt())
		}
	}
	return attempts
}

// has reports whether an event of the type was recorded.
func (h history) has(typ enumspb.EventType) bool {
	for _, event := range h.Events {
		if event.GetEventType() == typ {
			return true
		}
	}
	return false
}

// outcomes are those of the newest reconciliation that names each session.
func outcomes(t *testing.T, h history) map[string]calls.SessionOutcome {
	t.Helper()
	newest := map[string]calls.SessionOutcome{}
	for _, in := range inputs[calls.ReconcileInput](t, h, calls.ReconcileRecords) {
		for _, o := range in.Outcomes {
			newest[o.SessionID] = o
		}
	}
	return newest
}
