package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"
)

// Result is one measurement beside its baseline.
type Result struct {
	Benchmark       string  `json:"benchmark"`
	N               int     `json:"n"` // size, in the benchmark's own unit
	Seconds         float64 `json:"seconds"`
	Baseline        string  `json:"baseline"` // what it is compared with, in words
	BaselineSeconds float64 `json:"baseline_seconds"`
	Ratio           float64 `json:"ratio"` // Seconds / BaselineSeconds
}

func result(benchmark string, n int, seconds float64, baseline string, baselineSeconds float64) Result {
	return Result{
		Benchmark: benchmark, N: n, Seconds: seconds, Baseline: baseline, BaselineSeconds: baselineSeconds,
		Ratio: seconds / baselineSeconds,
	}
}

// Report is every result of one run, and the machine that it ran on.
type Report struct {
	Go      string   `json:"go"`
	OS      string   `json:"os"`
	CPUs    int      `json:"cpus"`
	Results []Result `json:"results"`
}

// NewReport returns a report without results.
func NewReport() *Report {
	return &Report{Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
}

// Print writes the report as a table.
func (r *Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "\n%s, %s, %d CPUs\n\n", r.Go, r.OS, r.CPUs)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BENCHMARK\tN\tSECONDS\tBASELINE\tSECONDS\tRATIO")
	for _, row := range r.Results {
		fmt.Fprintf(table, "%s\t%d\t%.3f\t%s\t%.3f\t%.1f\n",
			row.Benchmark, row.N, row.Seconds, row.Baseline, row.BaselineSeconds, row.Ratio)
	}
	return table.Flush()
}

// WriteJSON writes the report to a file.
func (r *Report) WriteJSON(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
