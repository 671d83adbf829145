package server_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/server"
	"github.com/kandev/recovery/agentctl/wire"
)

// harmless passes everything on to the real supervisor, except that what a
// fuzzer writes is neither run nor the end of the agent that is watched.
type harmless struct {
	server.Instances
	nowhere string // where no program is
	stops   *atomic.Int64
}

func (h harmless) Create(_ string, request wire.CreateRequest) (wire.Instance, error) {
	if len(request.Command) > 0 {
		request.Command = append([]string{h.nowhere}, request.Command[1:]...)
	}
	return h.Instances.Create("created", request)
}

func (h harmless) Stop(ctx context.Context, _ string, grace time.Duration) (bool, error) {
	h.stops.Add(1)
	return h.Instances.Stop(ctx, "absent", grace)
}

// siege is a server with one agent whose every kind of state is there to be
// lost: an open turn, a kept outcome, events that nobody acknowledged, a file.
type siege struct {
	*running
	raw        rawClient
	owner      *client.Client
	credential string
	root       string
	stops      atomic.Int64
	seconds    atomic.Int64 // the clock of its ownership
}

func besiege(f *testing.F) *siege {
	f.Helper()
	s := &siege{}
	nowhere := filepath.Join(f.TempDir(), "nothing")
	s.running = startWith(f, setup{
		logger: zap.NewNop(),
		clock:  func() time.Time { return time.Unix(s.seconds.Load(), 0) },
		wrap:   func(i server.Instances) server.Instances { return harmless{i, nowhere, &s.stops} },
	})
	s.raw = rawHTTP(f, s.running)
	s.owner, s.credential = s.own(f)

	request := agentRequest(f, nil)
	s.root = request.Roots[0]
	require.NoError(f, os.WriteFile(filepath.Join(s.root, "file"), []byte("kept"), 0o600))
	_, err := s.supervisor.Create("i", request)
	require.NoError(f, err)
	require.Eventually(f, func() bool {
		startup, err := s.supervisor.Startup("i")
		return err == nil && startup.Phase == wire.PhaseReady
	}, deadline, 5*time.Millisecond)
	_, err = s.supervisor.Prompt("i", "ended", say("hello"))
	require.NoError(f, err)
	require.Eventually(f, func() bool {
		kept, err := s.supervisor.TurnOutcome("i")
		return err == nil && kept.Outcome != nil
	}, deadline, 5*time.Millisecond)
	_, err = s.supervisor.Prompt("i", "open", say("wait"))
	require.NoError(f, err)
	require.Eventually(f, func() bool {
		list := s.supervisor.List()
		return len(list) == 1 && list[0].LastSeq == 4 // both starts, an update and an end
	}, deadline, 5*time.Millisecond)
	return s
}

// state is what a refused request must leave as it was.
type state struct {
	Instances []wire.Instance
	Detail    wire.InstanceDetail
	Startup   wire.Startup
	Kept      wire.KeptOutcome
	Details   wire.Details
	Files     map[string]string
	Stops     int64
}

func (s *siege) state(t *testing.T) state {
	t.Helper()
	now := state{Instances: s.supervisor.List(), Files: map[string]string{}, Stops: s.stops.Load()}
	var err error
	now.Detail, err = s.supervisor.Get("i")
	require.NoError(t, err)
	now.Startup, err = s.supervisor.Startup("i")
	require.NoError(t, err)
	now.Kept, err = s.supervisor.TurnOutcome("i")
	require.NoError(t, err)
	now.Details, err = s.owner.Details(t.Context())
	require.NoError(t, err, "the credential drives no more")
	root := os.DirFS(s.root)
	require.NoError(t, fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, path)
		now.Files[path] = string(content)
		return err
	}))
	return now
}

// withstand sends a body to a route that expects a T. It has to be answered, and
// a refused one to have had no effect; one that is no T has to be refused.
func withstand[T any](t *testing.T, s *siege, pattern string, body []byte) {
	t.Helper()
	before := s.state(t)
	s.seconds.Add(1)
	code := s.raw.send(t, pattern, "Bearer "+s.credential, string(body))
	var request *T
	if err := json.Unmarshal(body, &request); err != nil || request == nil {
		require.Contains(t, []wire.Code{wire.CodeBadRequest, wire.CodeTooLarge}, code)
	}
	require.NotEqual(t, wire.CodeInternal, code)
	if code != "" {
		require.Equal(t, before, s.state(t))
	}
	require.NotZero(t, s.authority.SinceRenewal(), "renewed")
	require.Empty(t, s.authority.Reason())
}
