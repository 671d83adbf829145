package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
)

// Units of results.
const (
	unitSeconds   = "s"
	unitPerSecond = "events/s"
	unitMiB       = "MiB"
)

// Result is one measurement beside its baseline.
type Result struct {
	Benchmark     string  `json:"benchmark"`
	N             int     `json:"n"` // size, in the benchmark's own unit
	Unit          string  `json:"unit"`
	Value         float64 `json:"value"`    // in Unit
	Baseline      string  `json:"baseline"` // what it is compared with, in words
	BaselineValue float64 `json:"baseline_value"`
	Ratio         float64 `json:"ratio"` // Value / BaselineValue
	// Figures are what else was measured, for the reader.
	Figures []Figure `json:"figures,omitempty"`
}

// Figure is one more number of a measurement.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func (r Result) figures() string {
	words := make([]string, len(r.Figures))
	for i, f := range r.Figures {
		words[i] = strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Name, number(f.Value), f.Unit))
	}
	return strings.Join(words, ", ")
}

// number keeps three digits of what is small and none of what is large.
func number(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
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
	fmt.Fprintln(table, "BENCHMARK\tN\tUNIT\tVALUE\tBASELINE\tVALUE\tRATIO\tFIGURES")
	for _, row := range r.Results {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%.2f\t%s\n", row.Benchmark, row.N, row.Unit,
			number(row.Value), row.Baseline, number(row.BaselineValue), row.Ratio, row.figures())
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
