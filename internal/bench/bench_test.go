//go:build unix

package bench

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/kandev/recovery/internal/stack/temporaltest"
)

// programs builds what a run starts, and puts it on PATH with the Temporal that
// there is.
func programs(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"backend", "agentctl", "fakeagent"} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, name), "../../cmd/"+name).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	temporal, err := temporaltest.Find()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(temporal, filepath.Join(dir, "temporal")))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// The benchmarks of the event plane run, with sizes that measure nothing, and
// leave nothing behind.
func TestEventsAtSmallSizes(t *testing.T) {
	programs(t)
	temporary := t.TempDir()
	require.NoError(t, os.Chmod(temporary, 0o755)) // as root, Postgres is another user
	t.Setenv("TMPDIR", temporary)
	var said bytes.Buffer
	report, err := Run(t.Context(), Options{
		Only: []string{Throughput, Latency, Drain}, Survivors: []int{1}, Instances: []int{1, 2}, Sizes: []int{200, 1000},
		Events: 300, Rounds: 1, Idle: 2, Out: &said, Logger: zap.NewNop(),
	})
	require.NoError(t, err)
	var rows []string
	for _, r := range report.Results {
		rows = append(rows, r.Benchmark)
		for _, v := range []float64{r.Value, r.BaselineValue, r.Ratio} {
			require.True(t, v > 0 && !math.IsInf(v, 0) && !math.IsNaN(v), "%+v", r)
		}
		for _, f := range r.Figures {
			require.Greater(t, f.Value, 0.0, "%+v", r)
		}
	}
	attached := []string{"throughput of 200 B", "latency of 200 B, p99", "throughput of 1000 B", "latency of 1000 B, p99"}
	require.Equal(t, append(append([]string{"drain"}, attached...), attached...), rows)
	require.Contains(t, said.String(), "BENCHMARK")
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)

	file := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, report.WriteJSON(file))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var read Report
	require.NoError(t, json.Unmarshal(content, &read))
	require.Equal(t, *report, read)
}

func TestRefusedOptions(t *testing.T) {
	good := Options{Survivors: []int{1}, Instances: []int{1}, Sizes: []int{200}, Events: 1, Rounds: 1, Idle: 2}
	require.NoError(t, good.check())
	for name, spoil := range map[string]func(*Options){
		"small updates":   func(o *Options) { o.Sizes = []int{199} },
		"large updates":   func(o *Options) { o.Sizes = []int{maxUpdate + 1} },
		"no instances":    func(o *Options) { o.Instances = nil },
		"shrinking sizes": func(o *Options) { o.Survivors = []int{2, 1} },
		"zero agents":     func(o *Options) { o.Instances = []int{0} },
		"no events":       func(o *Options) { o.Events = 0 },
		"no rounds":       func(o *Options) { o.Rounds = 0 },
		"one idle agent":  func(o *Options) { o.Idle = 1 },
		"unknown name":    func(o *Options) { o.Only = []string{"everything"} },
	} {
		o := good
		spoil(&o)
		_, err := Run(t.Context(), o)
		require.Error(t, err, name)
	}
}

func TestSelected(t *testing.T) {
	for only, want := range map[string][]string{
		"":                {Throughput, Latency, Drain, Memory, Recovery},
		"events":          {Throughput, Latency, Drain, Memory, Events},
		"recovery,memory": {Recovery, Memory},
	} {
		wanted, err := selected(strings.FieldsFunc(only, func(r rune) bool { return r == ',' }))
		require.NoError(t, err)
		var names []string
		for name := range wanted {
			names = append(names, name)
		}
		require.ElementsMatch(t, want, names)
	}
}

func TestQuantile(t *testing.T) {
	values := make([]float64, 200)
	for i := range values {
		values[len(values)-1-i] = float64(i + 1)
	}
	require.InDelta(t, 100, quantile(values, 0.5), 0)
	require.InDelta(t, 199, quantile(values, 0.995), 0)
	require.InDelta(t, 200, quantile(values, 1), 0)
	require.True(t, math.IsNaN(quantile(nil, 0.5)))
}

// A histogram's quantile is estimated within a bucket, and of what came between
// two readings only.
func TestHistogram(t *testing.T) {
	inf := math.Inf(1)
	before := histogram{limits: []float64{1, 2, 4, inf}, counts: []uint64{50, 50, 50, 50}}
	h := histogram{limits: []float64{1, 2, 4, inf}, counts: []uint64{50, 140, 149, 150}}.since(before)
	require.InDelta(t, 1.5, h.quantile(0.45), 1e-9)
	require.InDelta(t, 4, h.quantile(0.99), 1e-9)
	require.InDelta(t, 4, h.quantile(1), 0, "beyond the last limit")
	require.True(t, math.IsNaN(before.since(before).quantile(0.5)))
}

// What begins in the first and the last eighth of a load does not count.
func TestWindow(t *testing.T) {
	opened := time.Now()
	w := load{every: time.Second, count: 8}.window(opened)
	var samples []sample
	for i := range 9 {
		samples = append(samples, sample{opened.Add(time.Duration(i) * time.Second), float64(i)})
	}
	require.Equal(t, []float64{1, 2, 3, 4, 5, 6}, w.of(samples))
}

// The bound divides the hundredth update between the two parts in whichever way
// is lowest.
func TestSum99(t *testing.T) {
	arrivals := make([]float64, 1000)
	arrivals[999], arrivals[998], arrivals[997], arrivals[996], arrivals[995], arrivals[994] = 9, 1, 1, 1, 1, 1
	lag := histogram{limits: []float64{2, 4, 40}, counts: []uint64{990, 995, 1000}}
	require.InDelta(t, 1+2.4, sum99(arrivals, lag), 1e-9)
	lag.counts[1] = 990
	require.InDelta(t, 1+7.6, sum99(arrivals, lag), 1e-9)
	lag.counts[1] = 999
	require.InDelta(t, 1+2+2.0/9, sum99(arrivals, lag), 1e-9, "one of a thousand may arrive later")
}

func TestReadHistogram(t *testing.T) {
	text := "# TYPE a histogram\na_bucket{le=\"0.5\"} 2\na_bucket{le=\"+Inf\"} 3\na_sum 7\na_count 3\n"
	got, err := readHistogram(text, "a")
	require.NoError(t, err)
	require.Equal(t, histogram{limits: []float64{0.5, math.Inf(1)}, counts: []uint64{2, 3}}, got)
	_, err = readHistogram(text, "c")
	require.Error(t, err)
	_, err = readHistogram("a{le=", "a")
	require.Error(t, err)
}

// A tenth of the rate, for as long as it is measured and no longer than the full
// load has updates.
func TestLighterLoad(t *testing.T) {
	require.Equal(t, load{n: 10, size: 200, count: 800, every: 10 * time.Millisecond}, lighter(load{n: 10, count: 6000, size: 200}, 10_000))
	require.Equal(t, load{n: 1, size: 200, count: 30, every: time.Millisecond}, lighter(load{n: 1, count: 30, size: 200}, 10_000))
}
