package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// LogReport is the result of all rounds of a log scenario.
type LogReport struct {
	Scenario string      `json:"scenario"`
	Help     string      `json:"help"`
	Began    time.Time   `json:"began"`
	Machine  Machine     `json:"machine"`
	Command  string      `json:"command"`
	Rounds   []*LogRound `json:"rounds"`
	Skipped  []string    `json:"skipped,omitempty"` // collectors that were not measured, with the reasons
}

// Complete reports whether all rounds delivered everything.
func (r *LogReport) Complete() bool {
	return !slices.ContainsFunc(r.Rounds, func(o *LogRound) bool { return len(o.Faults) > 0 })
}

// each calls f for every collector with its rounds, in the order of their first
// rounds.
func (r *LogReport) each(f func(title string, rounds []*LogRound)) {
	var order []string
	by := map[string][]*LogRound{}
	for _, o := range r.Rounds {
		if by[o.Collector] == nil {
			order = append(order, o.Collector)
		}
		by[o.Collector] = append(by[o.Collector], o)
	}
	for _, title := range order {
		f(title, by[title])
	}
}

// LogMarkdown writes the medians of the rounds as a table with explanations. All
// reports must be from the same run.
func LogMarkdown(w io.Writer, reports ...*LogReport) error {
	var b strings.Builder
	for _, r := range reports {
		fmt.Fprintf(&b, "%s: %s\n", r.Scenario, r.Help)
	}
	b.WriteString("\n| scenario | collector | version | CPU s per million lines | peak RSS | lines/s | bytes sent/line | delivered |\n|---|---|---|---|---|---|---|---|\n")
	var all []*LogRound
	for _, r := range reports {
		all = append(all, r.Rounds...)
		r.each(func(title string, rounds []*LogRound) {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %.0f | %.1f | %s |\n", r.Scenario, title, rounds[0].Version,
				spread(rounds, (*LogRound).PerMillion, "%.2f", ""), spread(rounds, (*LogRound).peakMB, "%.0f", " MB"),
				Median(rounds, func(o *LogRound) float64 { return float64(o.Lines) / o.Seconds }),
				Median(rounds, func(o *LogRound) float64 { return float64(o.Bytes) / float64(o.Lines) }),
				delivered(rounds, (*LogRound).arrived))
		})
	}
	for _, r := range reports {
		for _, s := range r.Skipped {
			fmt.Fprintf(&b, "\nskipped: %s\n", s)
		}
		for _, o := range r.Rounds {
			for _, f := range o.Faults {
				fmt.Fprintf(&b, "\n%s, %s, round %d: %s\n", r.Scenario, o.Collector, o.Number, f)
			}
		}
	}
	m := reports[0].Machine
	fmt.Fprintf(&b, "\nMedians (lowest to highest in parentheses), the collectors in turn, on %d × %s, %.0f GB, %s %s", m.Cores, cmp.Or(m.CPU, m.Arch), float64(m.Memory)/1e9, m.OS, m.Kernel)
	others := func(o *LogRound) float64 { return o.OtherCores }
	fmt.Fprintf(&b, "; other programs used %.2f cores meanwhile (at most %.2f).\nCommand: `%s`\n", Median(all, others), highest(all, others), reports[0].Command)
	_, err := io.WriteString(w, b.String())
	return err
}
