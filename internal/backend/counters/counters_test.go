package counters

import (
	"bufio"
	"math"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kandev/recovery/recovery"
)

// scrape returns every series that is not zero, without the common prefix, and
// all the names that there are.
func scrape(t *testing.T, c *Counters) (series map[string]string, names []string) {
	t.Helper()
	answer := httptest.NewRecorder()
	c.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, answer.Code)
	series = map[string]string{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "# TYPE "); ok {
			kind := "counter"
			if strings.Contains(name, lagName) || strings.Contains(name, commitName) {
				kind = "histogram"
			}
			require.Contains(t, name, " "+kind)
			names = append(names, strings.Fields(name)[0])
			continue
		}
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && name != "#" && value != "0" && value != "NaN" {
			series[strings.TrimPrefix(name, prefix)] = value
		}
	}
	require.NoError(t, lines.Err())
	return series, names
}

// W-9: every decision has its counter and its event; what a repeated activity
// reports again is counted once, and a later pass counts anew.
func TestEveryDecisionIsCountedOnce(t *testing.T) {
	core, logged := observer.New(zapcore.InfoLevel)
	c := New(zap.New(core))
	for range 2 {
		c.AdoptionAttempted(1, "server")
		c.PassJudged(1, recovery.VerdictRefused, recovery.RefusedNoAnswer, false)
		c.AdoptionAttempted(2, "server")
		c.PassJudged(2, recovery.VerdictIncompatible, recovery.RefusedCapabilityIncompatibility, false)
		c.AdoptionAttempted(3, "server")
		c.PassJudged(3, recovery.VerdictAdoptable, "", true)
		c.PassJudged(4, recovery.VerdictAdoptable, "", false) // in use since pass 3
		c.PassJudged(5, recovery.VerdictFresh, "", false)
		c.PassJudged(6, recovery.VerdictOff, recovery.RefusedNoAnswer, false)
		c.ServerDetached("server")
		for _, session := range []string{"a", "b"} {
			c.SessionSettled(3, session, recovery.OutcomeRetracked, "i-"+session, "")
		}
		c.SessionSettled(4, "a", recovery.OutcomeRetracked, "", "") // tracked since pass 3
		c.SessionSettled(3, "c", recovery.OutcomeMissingValue, "i", string(recovery.ValueCommand))
		c.SessionSettled(3, "d", recovery.OutcomeReadFailed, "i", "")
		c.SessionSettled(3, "e", recovery.OutcomeDeadline, "i", "")
		c.SessionSettled(4, "e", recovery.OutcomeDeadline, "i", "")
		c.SessionSettled(3, "f", recovery.OutcomeAmbiguous, "", "")
		c.SessionSettled(3, "g", recovery.OutcomeUnstopped, "i", "")
		c.SessionSettled(3, "h", recovery.OutcomeStale, "", "")
		c.InstanceStopped("a", "loser", recovery.StopDuplicate)
		c.InstanceStopped("", "orphan", recovery.StopOrphan)
	}
	c.LaunchRefused("a", recovery.LaunchRefusedRecovering)
	c.LaunchRefused("a", recovery.LaunchRefusedRecovering)
	c.CredentialSuperseded("server", 7)

	series, _ := scrape(t, c)
	require.Equal(t, map[string]string{
		"adoptions_attempted_total":                                    "3",
		"adoptions_total":                                              "1",
		`adoptions_refused_total{reason="no_answer"}`:                  "1",
		`adoptions_refused_total{reason="capability_incompatibility"}`: "1",
		"servers_detached_total":                                       "1",
		"instances_retracked_total":                                    "2",
		`missing_values_total{value="command"}`:                        "1",
		"reads_exhausted_total":                                        "1",
		"deadline_cut_total":                                           "2",
		"duplicates_stopped_total":                                     "1",
		"ambiguous_joins_total":                                        "1",
		"sessions_unstopped_total":                                     "1",
		`launches_refused_total{reason="recovery_in_progress"}`:        "2",
		"credentials_superseded_total":                                 "1",
	}, series)
	events := map[string]int{}
	for _, entry := range logged.All() {
		events[entry.Message]++
	}
	require.Equal(t, map[string]int{
		"adoption attempted": 3, "control server adopted": 1, "adoption refused": 2, "control server detached": 1,
		"instance re-tracked": 2, "value missing": 1, "reads exhausted": 1, "cut by the deadline": 2, "duplicate stopped": 1,
		"ambiguous join": 1, "agent unstopped": 1, "launch refused": 2, "superseded credential rejected": 1,
	}, events)
	refusal := logged.FilterMessage("adoption refused").All()[0].ContextMap()
	require.Equal(t, "no_answer", refusal["reason"])
}

// Workers report from many goroutines.
func TestConcurrentCounts(t *testing.T) {
	c := New(zap.NewNop())
	var reports sync.WaitGroup
	for range 50 {
		reports.Go(func() { c.SessionSettled(1, "a", recovery.OutcomeRetracked, "i", "") })
	}
	reports.Wait()
	series, _ := scrape(t, c)
	require.Equal(t, map[string]string{"instances_retracked_total": "1"}, series)
}

// documented is a row of the operators' table of counters: name, labels, event.
var documented = regexp.MustCompile("(?m)^\\| `(" + prefix + "\\w+)(?:\\{(\\w+)\\})?` \\| `([^`]+)` \\|")

// W-9: names, labels and events are an interface: the operators' table has all of
// them and no other. Every series is there before the first count.
func TestCountersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	require.NoError(t, err)
	var promised []metric
	for _, row := range documented.FindAllStringSubmatch(string(page), -1) {
		promised = append(promised, metric{name: row[1], label: row[2], event: row[3]})
	}
	var kept []metric
	var expected []string
	for _, m := range metrics() {
		kept = append(kept, metric{name: prefix + m.name, label: m.label, event: m.event})
		expected = append(expected, prefix+m.name)
	}
	require.ElementsMatch(t, kept, promised)
	for _, name := range []string{lagName, commitName} {
		require.Contains(t, string(page), "| `"+name+"` |")
		expected = append(expected, name)
	}
	_, names := scrape(t, New(zap.NewNop()))
	require.ElementsMatch(t, expected, names)
}

// Buckets are narrow: what took a tenth of a second is above 0.09 s and below
// 0.12 s.
func TestTimes(t *testing.T) {
	c := New(zap.NewNop())
	now := time.Now()
	c.EventCommitted(now.Add(-100*time.Millisecond), now)
	c.EventsWritten(100 * time.Millisecond)
	series, _ := scrape(t, c)
	for _, name := range []string{"event_commit_lag_seconds", "event_commit_seconds"} {
		require.Equal(t, "1", series[name+"_count"])
		require.Equal(t, "0.1", series[name+"_sum"])
		lowest := math.Inf(1) // of the buckets that hold it
		for bucket, count := range series {
			if label, ok := strings.CutPrefix(bucket, name+`_bucket{le="`); ok {
				limit, err := strconv.ParseFloat(strings.TrimSuffix(label, `"}`), 64)
				require.NoError(t, err)
				require.Equal(t, "1", count)
				lowest = min(lowest, limit)
			}
		}
		require.InDelta(t, 0.105, lowest, 0.015)
	}
}
