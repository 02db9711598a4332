package scripttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/files"
)

// tolerance and spare are how many instructions more than in the baseline a
// benchmark may run: a share, and some for each record. They do not depend on
// the machine, so it is for changes that nobody would mind.
const (
	tolerance = 0.02
	spare     = 0.1
)

// Measured are the figures of a benchmark in a baseline, per record.
type Measured struct {
	Instructions float64 `json:"instructions"`
	First        float64 `json:"first_instructions"`
	Nanos        float64 `json:"nanoseconds"`
	Allocs       float64 `json:"allocations"`
}

// baseline is the file: benchmarks by "file: name".
type baseline struct {
	Version    int                 `json:"version"`
	Benchmarks map[string]Measured `json:"benchmarks"`
}

const baselineVersion = 1

func (b *Benchmark) key() string { return b.File + ": " + b.Name }

// ReadBaseline gives the report's benchmarks their figures of before. known is
// false when there is no such file.
func ReadBaseline(path string, r *Report) (known bool, err error) {
	text, err := files.Read(path, 16<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var b baseline
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err == nil && b.Version != baselineVersion {
		err = fmt.Errorf("it has version %d, and this weir knows %d", b.Version, baselineVersion)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the baseline %s: %w", path, err)
	}
	for i := range r.Benchmarks {
		if m, ok := b.Benchmarks[r.Benchmarks[i].key()]; ok {
			r.Benchmarks[i].Baseline = &m
		}
	}
	return true, nil
}

// Baseline is the content of a baseline file with the report's figures.
func Baseline(r *Report) string {
	b := baseline{Version: baselineVersion, Benchmarks: map[string]Measured{}}
	for _, m := range r.Benchmarks {
		if m.Problem == nil {
			b.Benchmarks[m.key()] = *m.measured()
		}
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text) + "\n"
}

func (b *Benchmark) measured() *Measured {
	return &Measured{round(b.Instructions), round(b.First), round(b.Nanos), round(b.Allocs)}
}

func round(f float64) float64 { return math.Round(f*1000) / 1000 }

// Worse says what a benchmark does with more instructions than before, "" for
// nothing.
func (b *Benchmark) Worse() string {
	if b.Baseline == nil {
		return ""
	}
	var out []string
	for _, m := range []struct {
		of        string
		was, have float64
	}{{"", b.Baseline.Instructions, b.Instructions}, {" of the first batch", b.Baseline.First, b.First}} {
		if m.have > m.was*(1+tolerance)+spare {
			out = append(out, fmt.Sprintf("%s instructions%s, %s in the baseline", figure(m.have), m.of, figure(m.was)))
		}
	}
	return strings.Join(out, "; ")
}

// Slower reports whether a benchmark has no figures, or worse ones than before.
func (r *Report) Slower() bool {
	for i := range r.Benchmarks {
		if b := &r.Benchmarks[i]; b.Problem != nil || b.Worse() != "" {
			return true
		}
	}
	return false
}

// figure writes a number with three digits that count.
func figure(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case f >= 0.01:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.1g", f)
}

// Benchmarks writes a table of what was measured.
func (p Pretty) Benchmarks(r *Report) {
	if len(r.Benchmarks) == 0 {
		fmt.Fprintln(p.W, "there are no benchmarks: write bench(name, component, text) into a test file")
		return
	}
	width := len("benchmark")
	for _, b := range r.Benchmarks {
		width = max(width, len([]rune(p.clean(b.Name))))
	}
	const form = "%-*s  %8s  %9s  %9s  %12s  %11s"
	fmt.Fprintf(p.W, form+"\n", width, "benchmark", "records", "ns", "allocs", "instructions", "first batch")
	for i := range r.Benchmarks {
		b := &r.Benchmarks[i]
		records := fmt.Sprint(b.Records)
		if b.Records == 0 {
			records = "a call"
		}
		if b.Problem != nil {
			fmt.Fprintf(p.W, "%-*s  %s\n", width, p.clean(b.Name), p.paint("31;1", "FAIL"))
			p.problem(b.Problem)
			continue
		}
		line := fmt.Sprintf(form, width, p.clean(b.Name), records, figure(b.Nanos), figure(b.Allocs), figure(b.Instructions), figure(b.First))
		if b.Baseline != nil && b.Baseline.Nanos > 0 {
			line += fmt.Sprintf("  time %+.0f%%", 100*(b.Nanos/b.Baseline.Nanos-1))
		}
		fmt.Fprintln(p.W, line)
		if worse := b.Worse(); worse != "" {
			fmt.Fprintf(p.W, "  %s %s\n", p.paint("31;1", "FAIL"), worse)
		}
	}
	if slices.ContainsFunc(r.Benchmarks, func(b Benchmark) bool { return b.Records > 0 }) {
		fmt.Fprintln(p.W, "Figures are for each record; instructions are the same on every machine.")
	}
}
