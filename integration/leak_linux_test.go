package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/kandev/recovery/internal/home"
	"github.com/kandev/recovery/store/seal"
	"github.com/kandev/recovery/userapi"
	"github.com/kandev/recovery/workflows"
)

// O-001.1, O-001.9, O-002.8, W-4: after restart upon restart one credential is
// stored, and neither it nor any before it, nor the key that seals them, nor the
// users' token is in an argument, an environment, a log, an answer of the API or
// a workflow's history; and no history holds a path of this host.
func TestNoSecretIsInSight(t *testing.T) {
	restarts := 2
	if long() {
		restarts = 10
	}
	w := newWorld(t)
	w.start().serving()
	a := w.agent("watched")
	s := &siege{world: w, db: w.store()}
	secrets := w.ownSecrets()
	for range restarts {
		record, token := s.recorded()
		secrets = append(secrets, token)
		for _, pid := range []int{w.backend.process.PID(), record.PID, a.pid} {
			hides(t, fmt.Sprintf("process %d", pid), processText(t, pid), secrets)
		}
		w.backend.kill()
		w.start().serving()
		require.Len(t, w.secrets(), 1)
	}
	_, newest := s.recorded()
	secrets = append(secrets, newest)
	a.prompt("one", "stream 3")
	a.ended("one")
	for name, text := range w.answers(a) {
		hides(t, name, text, secrets)
	}
	for name, text := range w.logs() {
		hides(t, name, text, secrets)
	}
	histories := w.histories(restarts + 1)
	require.Contains(t, histories, a.session, "payloads are searched as they were written")
	dsn, err := url.Parse(w.settings["KANDEV_DATABASE_DSN"])
	require.NoError(t, err)
	paths := []string{w.dir, filepath.Dir(programs.agentctl), dsn.Query().Get("host")}
	hides(t, "the histories", histories, append(paths, secrets...))
}

func hides(t *testing.T, where, text string, secrets []string) {
	t.Helper()
	for i, secret := range secrets {
		require.NotEmpty(t, secret)
		// The text is not shown: it may be long, and it is a secret's.
		require.False(t, strings.Contains(text, secret), "%s holds secret or path %d", where, i)
	}
}

// ownSecrets are those of the installation that no restart changes.
func (w *world) ownSecrets() []string {
	w.t.Helper()
	token, err := home.ReadToken(w.home)
	require.NoError(w.t, err)
	key, err := os.ReadFile(filepath.Join(w.home, seal.FileName))
	require.NoError(w.t, err)
	return []string{token, strings.TrimSpace(string(key))}
}

// processText is what every process of the user can read of a process.
func processText(t *testing.T, pid int) string {
	t.Helper()
	var text string
	for _, file := range []string{"cmdline", "environ"} {
		content, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), file))
		require.NoError(t, err)
		require.NotEmpty(t, content)
		text += string(content)
	}
	return text
}

// answers are the API's, byte for byte.
func (w *world) answers(a *agent) map[string]string {
	w.t.Helper()
	address, err := home.ReadRuntime(w.home)
	require.NoError(w.t, err)
	token, err := home.ReadToken(w.home)
	require.NoError(w.t, err)
	found := map[string]string{}
	for _, route := range []string{
		userapi.RouteStatus, userapi.RouteSessions, strings.ReplaceAll(userapi.RouteSession, "{id}", a.session),
		strings.ReplaceAll(userapi.RouteHistory, "{id}", a.session), strings.ReplaceAll(userapi.RouteProfile, "{id}", "watched"),
	} {
		request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+address.Address+route, nil)
		require.NoError(w.t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		answered, err := http.DefaultClient.Do(request)
		require.NoError(w.t, err)
		body, err := io.ReadAll(answered.Body)
		require.NoError(w.t, err)
		require.NoError(w.t, answered.Body.Close())
		require.Equal(w.t, http.StatusOK, answered.StatusCode, route)
		found[route] = string(body)
	}
	events, err := json.Marshal(a.transcript())
	require.NoError(w.t, err)
	found[userapi.RouteEvents] = string(events)
	return found
}

// logs are everything that backend and control server wrote.
func (w *world) logs() map[string]string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.home, "logs", "*"))
	require.NoError(w.t, err)
	require.NotEmpty(w.t, files)
	found := map[string]string{}
	for _, file := range append(files, filepath.Join(w.dir, "backend.out")) {
		content, err := os.ReadFile(file)
		require.NoError(w.t, err)
		found[filepath.Base(file)] = string(content)
	}
	return found
}

// histories are all that Temporal keeps of the installation's workflows, once it
// shows at least so many adoptions.
func (w *world) histories(adoptions int) string {
	w.t.Helper()
	engine, err := temporal.Dial(temporal.Options{
		HostPort: w.settings["TEMPORAL_ADDRESS"], Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(w.t, err)
	defer engine.Close()
	var runs []*workflowpb.WorkflowExecutionInfo
	w.eventually("Temporal shows every run", func() bool {
		runs = w.runs(engine)
		found := 0
		for _, run := range runs {
			if run.Type.Name == workflows.TypeAdoption {
				found++
			}
		}
		return found >= adoptions
	})
	var text strings.Builder
	for _, run := range runs {
		described, err := run.Marshal()
		require.NoError(w.t, err)
		text.Write(described)
		history := engine.GetWorkflowHistory(w.t.Context(), run.Execution.WorkflowId, run.Execution.RunId, false,
			enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			require.NoError(w.t, err)
			written, err := event.Marshal()
			require.NoError(w.t, err)
			text.Write(written)
		}
	}
	return text.String()
}

// runs are the installation's, by the names of its queues.
func (w *world) runs(engine temporal.Client) []*workflowpb.WorkflowExecutionInfo {
	w.t.Helper()
	queues := workflows.UserQueue(w.backend.status.Installation)
	var found []*workflowpb.WorkflowExecutionInfo
	request := &workflowservice.ListWorkflowExecutionsRequest{}
	for {
		page, err := engine.ListWorkflow(w.t.Context(), request)
		require.NoError(w.t, err)
		for _, run := range page.Executions {
			if strings.HasPrefix(run.TaskQueue, queues) {
				found = append(found, run)
			}
		}
		if request.NextPageToken = page.NextPageToken; len(page.NextPageToken) == 0 {
			return found
		}
	}
}
